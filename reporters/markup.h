// Characters that mean something in XML and in HTML. Pure function, any thread.
#ifndef VERBSCOPE_REPORTERS_MARKUP_H_
#define VERBSCOPE_REPORTERS_MARKUP_H_

#include <string>
#include <string_view>
#include <utility>

namespace verbscope {

// Appends the character, as an entity where it would be taken for markup, in text and in quotes.
inline void AppendEscaped(char character, std::string& text) {
  constexpr std::pair<char, std::string_view> kEntities[] = {
      {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&apos;"}};
  for (const auto& [meant, entity] : kEntities) {
    if (character != meant) continue;
    text += entity;
    return;
  }
  text += character;
}

}  // namespace verbscope

#endif  // VERBSCOPE_REPORTERS_MARKUP_H_
