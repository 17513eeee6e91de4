// All checks of `check`, in the order in which they run, and what becomes of their rows.
//
// Constant data and pure functions; any thread.
#ifndef VERBSCOPE_CORE_CHECKS_CATALOG_H_
#define VERBSCOPE_CORE_CHECKS_CATALOG_H_

#include <span>
#include <string_view>
#include <vector>

#include "core/checks/check.h"
#include "core/plan/plan.h"
#include "core/record/record.h"
#include "core/scenario/scenario.h"

namespace verbscope {

std::span<const CheckDefinition> CheckDefinitions();
// Null: no such check.
const CheckDefinition* FindCheck(std::string_view name);

// The same for a document.
std::vector<CatalogRow> CheckCatalog();
std::vector<BehaviourRow> BehaviourRows();

// Those that the plan asks for; all of them, where it names none.
std::vector<Scenario> CheckScenarios(const Plan& plan);

// Rows named "CHECK/PART", as scenarios leave them, become one row per check with its parts: failed
// if a part failed, else a deviation if one is, else passed if one passed, else skipped. What it
// expects and observed are those of the first part that decides. Other rows stay as they are.
std::vector<CheckRow> FoldChecks(std::vector<CheckRow> rows);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_CHECKS_CATALOG_H_
