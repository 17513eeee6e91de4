#include "transports/common/byte_text.h"

#include <gtest/gtest.h>

namespace verbscope {
namespace {

TEST(ByteTextTest, BytesAreShownInTheLargestFittingUnit) {
  EXPECT_EQ(FormatBytes(0), "0 bytes");
  EXPECT_EQ(FormatBytes(1023), "1023 bytes");
  EXPECT_EQ(FormatBytes(65536), "64 KiB");
  EXPECT_EQ(FormatBytes(1536 * 1024), "1.5 MiB");
  EXPECT_EQ(FormatBytes(uint64_t{3} << 40), "3 TiB");
}

}  // namespace
}  // namespace verbscope
