#include "core/plan/json_fields.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace verbscope {
namespace {

using nlohmann::json;

template <class T>
std::optional<T> Read(const char* text) {
  const json parsed = json::parse(text, nullptr, false);
  JsonFields fields(parsed, "test", ErrorClass::kRun);
  T value{};
  fields.Get("x", value);
  return fields.ok() ? std::optional<T>(value) : std::nullopt;
}

TEST(JsonFieldsTest, IntegersAreReadWithinTheRangeOfTheirType) {
  EXPECT_EQ(Read<uint8_t>(R"({"x":255})"), 255);
  EXPECT_EQ(Read<uint8_t>(R"({"x":256})"), std::nullopt);
  EXPECT_EQ(Read<uint32_t>(R"({"x":-1})"), std::nullopt);
  EXPECT_EQ(Read<int>(R"({"x":-1})"), -1);
  EXPECT_EQ(Read<int64_t>(R"({"x":9223372036854775807})"), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(Read<int64_t>(R"({"x":9223372036854775808})"), std::nullopt);
  EXPECT_EQ(Read<uint64_t>(R"({"x":18446744073709551615})"), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(Read<uint64_t>(R"({"x":18446744073709551616})"), std::nullopt);
  EXPECT_EQ(Read<int>(R"({"x":1.0})"), std::nullopt);
  EXPECT_EQ(Read<int>(R"({"x":true})"), std::nullopt);
  EXPECT_EQ(Read<int>(R"({"x":"1"})"), std::nullopt);
}

TEST(JsonFieldsTest, OtherScalarsAreCheckedForTheirType) {
  EXPECT_EQ(Read<double>(R"({"x":1})"), 1.0);
  EXPECT_EQ(Read<double>(R"({"x":-2.5})"), -2.5);
  EXPECT_EQ(Read<double>(R"({"x":"1"})"), std::nullopt);
  EXPECT_EQ(Read<bool>(R"({"x":true})"), true);
  EXPECT_EQ(Read<bool>(R"({"x":1})"), std::nullopt);
  EXPECT_EQ(Read<std::string>(R"({"x":"y"})"), "y");
  EXPECT_EQ(Read<std::string>(R"({"x":1})"), std::nullopt);
}

TEST(JsonFieldsTest, NonFiniteNumbersAreRefused) {
  const json object = {{"x", std::numeric_limits<double>::infinity()}};
  JsonFields fields(object, "test", ErrorClass::kRun);
  double value = 0;
  fields.Get("x", value);
  ASSERT_FALSE(fields.ok());
  EXPECT_EQ(fields.TakeError().message, "test.x is not a finite number");
}

TEST(JsonFieldsTest, OptionalMembersMayBeNullOrAbsentButNotWrong) {
  const json object = {{"null", nullptr}, {"five", 5}, {"text", "5"}};
  JsonFields fields(object, "test", ErrorClass::kRun);
  std::optional<int> value = 1;
  fields.Get("null", value);
  EXPECT_EQ(value, std::nullopt);
  value = 1;
  fields.Get("absent", value);
  EXPECT_EQ(value, std::nullopt);
  fields.Get("five", value);
  EXPECT_EQ(value, 5);
  EXPECT_TRUE(fields.ok());
  fields.Get("text", value);
  EXPECT_FALSE(fields.ok());
}

TEST(JsonFieldsTest, TheFirstProblemIsKeptAndLaterReadsDoNothing) {
  const json object = {{"a", "wrong"}, {"b", 7}};
  JsonFields fields(object, "test", ErrorClass::kSetup);
  int a = 1;
  int b = 2;
  fields.Get("a", a);
  fields.Get("b", b);
  fields.Get("missing", b);
  EXPECT_EQ(a, 1);
  EXPECT_EQ(b, 2);
  const Error error = fields.TakeError();
  EXPECT_EQ(error.message, "test.a is not a whole number");
  EXPECT_EQ(error.error_class, ErrorClass::kSetup);
}

TEST(JsonFieldsTest, MissingMembersMatterOnlyWhenRequired) {
  const json object = json::object();
  JsonFields fields(object, "test", ErrorClass::kRun);
  int value = 3;
  fields.GetOr("x", value);
  EXPECT_TRUE(fields.ok());
  EXPECT_EQ(value, 3);
  EXPECT_EQ(fields.Object("x"), nullptr);
  EXPECT_TRUE(fields.ok());
  fields.Get("x", value);
  EXPECT_EQ(fields.TakeError().message, "test.x is missing");
}

TEST(JsonFieldsTest, ArraysAreBoundedAndEveryElementIsChecked) {
  const json object = {{"a", {1, 2, 3}}, {"mixed", {1, "2"}}, {"no", 1}};
  std::vector<int> values;
  JsonFields good(object, "test", ErrorClass::kRun);
  good.GetArray("a", values, 3);
  EXPECT_TRUE(good.ok());
  EXPECT_EQ(values, (std::vector<int>{1, 2, 3}));
  JsonFields long_array(object, "test", ErrorClass::kRun);
  long_array.GetArray("a", values, 2);
  EXPECT_FALSE(long_array.ok());
  JsonFields mixed(object, "test", ErrorClass::kRun);
  mixed.GetArray("mixed", values, 3);
  EXPECT_FALSE(mixed.ok());
  JsonFields no_array(object, "test", ErrorClass::kRun);
  no_array.GetArray("no", values, 3);
  EXPECT_FALSE(no_array.ok());
}

TEST(JsonFieldsTest, WhatIsNoObjectIsAnErrorBeforeAnythingIsRead) {
  for (const json& value : {json(1), json(nullptr), json::array({1}), json("text")}) {
    JsonFields fields(value, "test", ErrorClass::kRun);
    int number = 4;
    fields.Get("x", number);
    EXPECT_EQ(number, 4);
    EXPECT_EQ(fields.TakeError().message, "test is not an object");
  }
}

}  // namespace
}  // namespace verbscope
