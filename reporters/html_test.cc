#include "reporters/html.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "core/record/random_record.h"
#include "core/record/record_json.h"
#include "reporters/html_assets.h"
#include "reporters/json.h"

namespace verbscope {
namespace {

using nlohmann::json;

constexpr std::string_view kOpen =
    "<script type=\"application/json\" class=\"verbscope-document\">\n";
constexpr std::string_view kClose = "</script>";

// The texts of the document elements, as a browser would cut them out: up to the next end tag.
std::vector<std::string> Documents(std::string_view page) {
  std::vector<std::string> documents;
  for (size_t at = page.find(kOpen); at != std::string_view::npos; at = page.find(kOpen, at)) {
    at += kOpen.size();
    const size_t end = page.find(kClose, at);
    if (end == std::string_view::npos) break;
    documents.emplace_back(page.substr(at, end - at));
    at = end;
  }
  return documents;
}

size_t Count(std::string_view text, std::string_view word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    ++count;
  }
  return count;
}

std::string RenderOne(const Record& record) { return RenderHtml({&record, 1}); }

TEST(RenderHtmlTest, StoredDocumentsComeBackOutOfThePage) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("testdata/records")) {
    if (entry.path().extension() != ".json") continue;
    std::stringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    const json document = json::parse(text.str(), nullptr, /*allow_exceptions=*/false);
    const auto record = RecordFromJson(document);
    ASSERT_TRUE(record.has_value()) << entry.path() << ": " << record.error().message;
    const std::vector<std::string> inside = Documents(RenderOne(*record));
    ASSERT_EQ(inside.size(), 1u) << entry.path();
    EXPECT_EQ(json::parse(inside[0], nullptr, false), document) << entry.path();
    ++count;
  }
  EXPECT_GE(count, 8);
}

TEST(RenderHtmlTest, HostileRecordsComeBackOutOfThePage) {
  std::mt19937_64 random(20);
  for (int i = 0; i < 100; ++i) {
    std::vector<Record> records;
    for (int j = 0; j <= i % 3; ++j) records.push_back(RandomRecord(random, /*hostile=*/true));
    const std::string page = RenderHtml(records);
    const std::vector<std::string> inside = Documents(page);
    ASSERT_EQ(inside.size(), records.size());
    for (size_t j = 0; j < records.size(); ++j) {
      EXPECT_EQ(json::parse(inside[j], nullptr, false),
                json::parse(RenderJson(records[j]), nullptr, false));
    }
    EXPECT_EQ(ValidUtf8(page), page);
  }
}

TEST(RenderHtmlTest, NoTextOfARecordEndsItsElement) {
  for (const std::string_view text :
       {"</script>", "</SCRIPT >", "<!--<script>", "]]>", "<img src=x onerror=alert(1)>",
        "\"'&<>\n\r\t\x1b[31m\x80\xff", "</noscript><b>"}) {
    Record record;
    record.command = text;
    record.argv = {std::string(text)};
    record.local.host = text;
    record.notices = {std::string(text)};
    record.error.emplace().message = text;
    const std::string page = RenderOne(record);
    const std::vector<std::string> inside = Documents(page);
    ASSERT_EQ(inside.size(), 1u);
    EXPECT_EQ(inside[0].find('<'), std::string::npos) << inside[0];
    // The page with the text has the elements of a page without it.
    const std::string plain = RenderOne(Record{});
    EXPECT_EQ(Count(page, "<script"), Count(plain, "<script")) << text;
    EXPECT_EQ(Count(page, "</script"), Count(plain, "</script")) << text;
    EXPECT_EQ(Count(page, "<img"), Count(plain, "<img")) << text;
    EXPECT_EQ(Count(page, "</noscript"), Count(plain, "</noscript")) << text;
    EXPECT_EQ(json::parse(inside[0], nullptr, false),
              json::parse(RenderJson(record), nullptr, false));
  }
}

TEST(RenderHtmlTest, WithoutScriptsTheOutcomeIsStillThere) {
  Record record;
  record.command = "send-lat";
  record.verdict = "error";
  record.exit_code = 5;
  record.error.emplace().message = "peer <died> & \"left\"";
  const std::string page = RenderOne(record);
  EXPECT_NE(page.find("<li>send-lat: error, exit code 5. peer &lt;died&gt; &amp; &quot;left&quot;"),
            std::string::npos);
}

TEST(RenderHtmlTest, NoRecordsMakeAPageWithoutDocuments) {
  const std::string page = RenderHtml({});
  EXPECT_TRUE(Documents(page).empty());
  EXPECT_TRUE(page.ends_with("</html>\n"));
}

TEST(HtmlAssetsTest, ThePageLoadsNothing) {
  for (const std::string_view asset : {PageStyle(), PageScript()}) {
    ASSERT_GT(asset.size(), 1000u);
    for (const std::string_view word :
         {"http:", "https:", "@import", "url(", "fetch(", "XMLHttpRequest", "WebSocket",
          "EventSource", "sendBeacon", "import(", ".src ="}) {
      EXPECT_EQ(asset.find(word), std::string_view::npos) << word;
    }
  }
  const std::string page = RenderHtml({});
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
  EXPECT_EQ(Count(page, " src="), 0u);
  EXPECT_EQ(Count(page, "<link "), 1u);
}

// Texts of documents must enter the page as text only.
TEST(HtmlAssetsTest, ThePageMakesNoMarkupOfTexts) {
  for (const std::string_view word :
       {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function",
        "createContextualFragment", "srcdoc"}) {
    EXPECT_EQ(PageScript().find(word), std::string_view::npos) << word;
  }
}

TEST(HtmlAssetsTest, NothingInAnAssetEndsItsElement) {
  EXPECT_EQ(PageStyle().find("</"), std::string_view::npos);
  for (const std::string_view script : {PageScript(), ChartScript()}) {
    EXPECT_EQ(script.find("</script"), std::string_view::npos);
    EXPECT_EQ(script.find("<!--"), std::string_view::npos);
  }
  EXPECT_NE(ChartScript().find("Chart.js v3"), std::string_view::npos);
  EXPECT_NE(ChartScript().find("MIT License"), std::string_view::npos);
}

}  // namespace
}  // namespace verbscope
