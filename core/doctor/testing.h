// The hosts of testdata/sysfs as folders, and their preflight in few words. Test only.
#ifndef VERBSCOPE_CORE_DOCTOR_TESTING_H_
#define VERBSCOPE_CORE_DOCTOR_TESTING_H_

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "core/doctor/doctor.h"
#include "transports/common/temp_tree.h"

namespace verbscope {

// Path -> text of a .tree file; testdata/sysfs/expand.py describes the format.
inline std::map<std::string, std::string> TreeFiles(const std::string& name) {
  std::map<std::string, std::string> files;
  std::ifstream tree("testdata/sysfs/" + name + ".tree");
  EXPECT_TRUE(tree) << name;
  for (std::string line; std::getline(tree, line);) {
    constexpr std::string_view kInclude = "@include ";
    if (line.empty() || line.starts_with("#")) continue;
    if (line.starts_with(kInclude)) {
      const std::string other = line.substr(kInclude.size());
      files = TreeFiles(other.substr(0, other.rfind(".tree")));
    } else if (line.starts_with("-")) {
      const std::string path = line.substr(1);
      std::erase_if(files, [&path](const auto& file) {
        return file.first == path || file.first.starts_with(path + "/");
      });
    } else {
      const size_t end = std::min(line.find(' '), line.size());
      std::string text = line.substr(std::min(end + 1, line.size()));
      for (size_t at; (at = text.find("\\n")) != text.npos;) text.replace(at, 2, "\n");
      files[line.substr(0, end)] = text.empty() ? "" : text + "\n";
    }
  }
  return files;
}

class TreeHost {
 public:
  explicit TreeHost(const std::string& name) {
    for (const auto& [path, text] : TreeFiles(name)) folder_.Write(path.substr(1), text);
  }
  // Replaces one file, or adds it.
  void Write(const std::string& path, const std::string& text) const {
    folder_.Write(path.substr(1), text);
  }
  const std::string& root() const { return folder_.root(); }
  HostTree tree() const { return HostTree(folder_.root()); }

  std::vector<PreflightRow> Rows(const PreflightRequest& request = {}) const {
    auto rows = Preflight(tree(), request);
    EXPECT_TRUE(rows) << rows.error().message;
    return rows ? *rows : std::vector<PreflightRow>();
  }

 private:
  TempTree folder_;
};

// "FAIL memlock (host): 64 KiB" of each row that is wrong, in their order.
inline std::vector<std::string> WrongRows(const std::vector<PreflightRow>& rows) {
  std::vector<std::string> wrong;
  for (const PreflightRow& row : rows) {
    if (row.status != "fail" && row.status != "warn") continue;
    wrong.push_back((row.status == "fail" ? "FAIL " : "WARN ") + row.name + " (" + row.about +
                    "): " + row.value);
  }
  return wrong;
}

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_DOCTOR_TESTING_H_
