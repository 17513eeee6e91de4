// Records as JUnit XML, for the test views of Jenkins, GitLab and others. Pure function, any
// thread.
#ifndef VERBSCOPE_REPORTERS_JUNIT_H_
#define VERBSCOPE_REPORTERS_JUNIT_H_

#include <span>
#include <string>

#include "core/record/record.h"

namespace verbscope {

// A <testsuite> per record, in it a <testcase> named "run", then one for each assertion, check and
// gated row of a comparison.
//
//   pass, better, same        passes
//   deviation                 passes, what was observed in <system-out>
//   fail, worse               <failure type="fail">
//   inconclusive, undecided   <failure type="inconclusive">, but <skipped> where the record's exit
//                             code is 0: the user asked for that
//   skip                      <skipped>
//   anything else             <failure type="unknown">
//
// "run" is an <error> when the record has an error, when it holds nothing, and when its exit code
// is not 0 and no other testcase says why: a broken run is never green.
//
// Well-formed XML 1.0 in UTF-8 whatever the texts: characters not allowed there are removed.
std::string RenderJunit(std::span<const Record> records);

}  // namespace verbscope

#endif  // VERBSCOPE_REPORTERS_JUNIT_H_
