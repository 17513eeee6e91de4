#include "reporters/html.h"

#include <algorithm>
#include <string_view>

#include "core/record/record_json.h"
#include "reporters/html_assets.h"
#include "reporters/json.h"
#include "reporters/markup.h"

namespace verbscope {
namespace {

constexpr std::string_view kHead = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<link rel="icon" href="data:,">
<title>verbscope report</title>
<style>
)";

// In JSON `<` stands in texts only, so that its escape means the same there. Without it nothing can
// end the element or open a comment in it.
void AppendDocument(const std::string& json, std::string& page) {
  page += "<script type=\"application/json\" class=\"verbscope-document\">\n";
  for (const char character : json) {
    if (character == '<') {
      page += "\\u003c";
    } else {
      page += character;
    }
  }
  page += "</script>\n";
}

std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char character : Printable(text)) AppendEscaped(character, escaped);
  return escaped;
}

// What a reader without scripts gets: the outcome, and where the rest is.
void AppendNoScript(std::span<const Record> records, std::string& page) {
  constexpr size_t kMostNamed = 100;
  page +=
      "<noscript><p>This report draws itself with a script, and scripts are off here. The JSON "
      "documents in its source have every number. The outcome:</p>\n<ul>\n";
  for (const Record& record : records.first(std::min(records.size(), kMostNamed))) {
    page += "<li>" + Escaped(record.command) + ": " + Escaped(record.verdict) + ", exit code " +
            std::to_string(record.exit_code);
    if (record.error) page += ". " + Escaped(record.error->message);
    page += "</li>\n";
  }
  page += "</ul></noscript>\n";
}

}  // namespace

std::string RenderHtml(std::span<const Record> records) {
  std::string page(kHead);
  page += PageStyle();
  page += "</style>\n</head>\n<body>\n<main>\n";
  AppendNoScript(records, page);
  page +=
      "</main>\n<footer>The JSON documents that this page shows are in it, unchanged. It loads "
      "nothing. Charts: Chart.js, MIT licence.</footer>\n";
  for (const Record& record : records) AppendDocument(RenderJson(record), page);
  page.append("<script>\n").append(ChartScript()).append("</script>\n");
  page.append("<script>\n").append(PageScript()).append("</script>\n");
  page += "</body>\n</html>\n";
  return page;
}

}  // namespace verbscope
