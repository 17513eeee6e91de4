#include "core/histogram/base64.h"

#include <gtest/gtest.h>

#include <random>

namespace verbscope {
namespace {

std::vector<uint8_t> Bytes(std::string_view text) { return {text.begin(), text.end()}; }

TEST(Base64, MatchesTheVectorsOfRfc4648) {
  const std::pair<std::string_view, std::string_view> kVectors[] = {{"", ""},
                                                                    {"f", "Zg=="},
                                                                    {"fo", "Zm8="},
                                                                    {"foo", "Zm9v"},
                                                                    {"foob", "Zm9vYg=="},
                                                                    {"fooba", "Zm9vYmE="},
                                                                    {"foobar", "Zm9vYmFy"}};
  for (const auto& [plain, text] : kVectors) {
    EXPECT_EQ(EncodeBase64(Bytes(plain)), text);
    EXPECT_EQ(DecodeBase64(text), Bytes(plain)) << text;
  }
}

TEST(Base64, EveryByteValueSurvives) {
  std::mt19937 random(1);
  for (size_t size = 0; size < 300; ++size) {
    std::vector<uint8_t> bytes(size);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    EXPECT_EQ(DecodeBase64(EncodeBase64(bytes)), bytes);
  }
}

TEST(Base64, RefusesAnythingButTheOneEncoding) {
  for (const std::string_view text :
       {"Z", "Zg", "Zg=", "Zg===", "====", "=", "Z===", "Zm9v=", "Zg==Zg==", "Zm8=Zm9v",
        "Z=g=", "Zh==", "Zm9=", "Zm9v\n", "Zm 9", "Zm9-", "Zm9_", "Zm9\xff"}) {
    EXPECT_EQ(DecodeBase64(text), std::nullopt) << text;
  }
  EXPECT_EQ(DecodeBase64(std::string_view("Zm\0v", 4)), std::nullopt);
}

}  // namespace
}  // namespace verbscope
