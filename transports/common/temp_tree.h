// A folder of small files under the test's own temporary folder, gone with it: stands for /sys or
// /proc where a test must say what they hold.
#ifndef VERBSCOPE_TRANSPORTS_COMMON_TEMP_TREE_H_
#define VERBSCOPE_TRANSPORTS_COMMON_TEMP_TREE_H_

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace verbscope {

class TempTree {
 public:
  TempTree() : root_(::testing::TempDir() + "/tree_XXXXXX") {
    if (::mkdtemp(root_.data()) == nullptr) std::abort();
  }
  TempTree(const TempTree&) = delete;
  TempTree& operator=(const TempTree&) = delete;
  ~TempTree() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }

  const std::string& root() const { return root_; }

  // Writes root/name, making the folders on the way; returns its path.
  std::string Write(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = std::filesystem::path(root_) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path.string();
  }

 private:
  std::string root_;
};

}  // namespace verbscope

#endif  // VERBSCOPE_TRANSPORTS_COMMON_TEMP_TREE_H_
