#include "transports/soft/options/parse.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include "core/base/file_descriptor.h"
#include "transports/soft/options/draft.h"
#include "transports/soft/options/value_text.h"

namespace verbscope::soft {
namespace {

constexpr std::string_view kSoft = "soft";
constexpr std::string_view kConfigKey = "config";
constexpr std::string_view kDefectKey = "defect";
constexpr size_t kMaxStringBytes = 8192;

template <class T, class U>
bool Store(const std::optional<T>& value, U& target) {
  if (value) target = static_cast<U>(*value);
  return value.has_value();
}

bool SetLink(std::string_view text, Draft& draft) {
  return Store(FindChoice<LinkKind>(text, kLinks), draft.options.link);
}
bool SetAddress(std::string_view text, Draft& draft) {
  draft.options.port.gids.reset();  // the string goes before the file
  return Store(AddressFromText(text), draft.options.address);
}
bool SetGso(std::string_view text, Draft& draft) {
  return Store(FindChoice<UdpGso>(text, kGsoChoices), draft.options.gso);
}
bool SetMtu(std::string_view text, Draft& draft) {
  const auto bytes = CountFromText(text, 256, 4096);
  draft.mtu_given = true;
  return Store(bytes, draft.options.port.active_mtu_bytes) && IsMtu(*bytes);
}
bool SetInline(std::string_view text, Draft& draft) {
  return Store(CountFromText(text, 0, kMaxInlineBytes), draft.options.limits.max_inline_bytes);
}
bool SetMaxCqe(std::string_view text, Draft& draft) {
  return Store(CountFromText(text, 1, kLargestMaxCqe), draft.options.limits.device.max_cqe);
}
bool SetProfile(std::string_view text, Draft& draft) {
  return Store(FindChoice<Profile>(text, kProfiles), draft.options.profile);
}
bool SetDrop(std::string_view text, Draft& draft) {
  return Store(ChanceFromText(text), draft.options.fault.drop);
}
bool SetDuplicate(std::string_view text, Draft& draft) {
  return Store(ChanceFromText(text), draft.options.fault.duplicate);
}
bool SetReorder(std::string_view text, Draft& draft) {
  return Store(ChanceFromText(text), draft.options.fault.reorder);
}
bool SetCorrupt(std::string_view text, Draft& draft) {
  return Store(ChanceFromText(text), draft.options.fault.corrupt);
}
bool SetDelay(std::string_view text, Draft& draft) {
  return Store(DelayFromText(text), draft.options.fault.delay);
}
bool SetSeed(std::string_view text, Draft& draft) {
  return Store(CountFromText(text, 0, UINT64_MAX), draft.options.fault.seed);
}
bool SetDefects(std::string_view text, Draft& draft) {
  draft.options.defects = {};  // the string goes before the file
  while (true) {
    const size_t plus = text.find('+');
    const std::optional<Defect> defect = DefectOf(text.substr(0, plus));
    if (!defect) return false;
    draft.options.defects.Add(*defect);
    if (plus == text.npos) return true;
    text.remove_prefix(plus + 1);
  }
}
bool SetPcap(std::string_view text, Draft& draft) {
  draft.options.pcap_path = text;
  return IsPath(text);
}
// The file itself is read before all other keys.
bool CheckConfig(std::string_view text, Draft&) { return IsPath(text); }

struct Key {
  std::string_view name;
  bool (*set)(std::string_view text, Draft& draft);  // false: the value is not allowed
  std::string_view allowed;
};
constexpr std::array<Key, 16> kKeys = {{
    {"link", SetLink, kLinkAllowed},
    {"addr", SetAddress, kAddressAllowed},
    {"gso", SetGso, "allowed: auto, on or off"},
    {"mtu", SetMtu, kMtuAllowed},
    {"inline", SetInline, "allowed: 0 to 1024 bytes"},
    {"max_cqe", SetMaxCqe, "allowed: 1 to 16777216"},
    {"profile", SetProfile, "allowed: ibta or rxe-6.1"},
    {"drop", SetDrop, kChanceAllowed},
    {"duplicate", SetDuplicate, kChanceAllowed},
    {"reorder", SetReorder, kChanceAllowed},
    {"corrupt", SetCorrupt, kChanceAllowed},
    {"delay", SetDelay, kDelayAllowed},
    {"seed", SetSeed, "allowed: 0 to 18446744073709551615"},
    {"pcap", SetPcap, kPathAllowed},
    {kDefectKey, SetDefects, "allowed, joined by +: "},
    {kConfigKey, CheckConfig, kPathAllowed},
}};

std::vector<std::string_view> KeyNames() {
  std::vector<std::string_view> names;
  names.reserve(kKeys.size());
  for (const Key& key : kKeys) names.push_back(key.name);
  return names;
}

// Words among the values, for the suggestion.
std::vector<std::string_view> WordsOf(std::string_view key) {
  if (key == "link") return NamesOf<LinkKind>(kLinks);
  if (key == "gso") return NamesOf<UdpGso>(kGsoChoices);
  if (key == "profile") return NamesOf<Profile>(kProfiles);
  if (key == kDefectKey) return NamesOf<Defect>(kDefectChoices);
  return {};
}

std::string AllowedOf(const Key& key) {
  std::string allowed(key.allowed);
  if (key.name == kDefectKey) allowed += Listed(WordsOf(key.name));
  return allowed;
}

struct Item {
  const Key* key;
  std::string_view value;
};

Error StringError(std::string message, std::string cause, std::string next_step = "") {
  return UsageError("device string: " + std::move(message), std::move(cause), std::move(next_step));
}

// One "key=value".
Expected<Item> ReadItem(std::string_view text) {
  const std::string keys = "the keys are " + Listed(KeyNames());
  if (text.empty()) {
    return Fail(StringError("a key is missing", "between commas stands one key=value",
                            "remove the comma or the colon"));
  }
  const size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  const auto key =
      std::find_if(kKeys.begin(), kKeys.end(), [name](const Key& row) { return row.name == name; });
  if (key == kKeys.end()) {
    return Fail(StringError("unknown key " + Quoted(name), keys, Suggestion(name, KeyNames())));
  }
  if (equals == text.npos) {
    return Fail(StringError(fmt::format("{} has no value", key->name), AllowedOf(*key),
                            fmt::format("write {}=VALUE", key->name)));
  }
  return Item{.key = &*key, .value = text.substr(equals + 1)};
}

Expected<std::vector<Item>> ReadItems(std::string_view text) {
  std::vector<Item> items;
  while (true) {
    const size_t comma = text.find(',');
    Expected<Item> item = ReadItem(text.substr(0, comma));
    if (!item) return Fail(std::move(item.error()));
    for (const Item& before : items) {
      if (before.key != item->key) continue;
      return Fail(
          StringError(fmt::format("{} is given twice", item->key->name),
                      fmt::format("as {} and as {}", Quoted(before.value), Quoted(item->value)),
                      "give it once"));
    }
    items.push_back(*item);
    if (comma == text.npos) return items;
    text.remove_prefix(comma + 1);
  }
}

Status SetItem(const Item& item, Draft& draft) {
  if (item.key->set(item.value, draft)) return {};
  return Fail(StringError(fmt::format("{}={} is refused", item.key->name, Quoted(item.value)),
                          AllowedOf(*item.key), Suggestion(item.value, WordsOf(item.key->name))));
}

Error FileError(const std::string& path, std::string cause, int errno_value = 0) {
  Error error =
      UsageError(fmt::format("config file {} cannot be read", Quoted(path)), std::move(cause));
  error.errno_value = errno_value;
  return error;
}

}  // namespace

Expected<std::string> ReadConfigFile(const std::string& path) {
  // Without O_NONBLOCK a named pipe would wait for its writer.
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return Fail(FileError(path, ErrnoText(errno), errno));
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0) return Fail(FileError(path, ErrnoText(errno), errno));
  if (!S_ISREG(status.st_mode)) return Fail(FileError(path, "it is not a regular file"));
  std::string text;
  std::array<char, 65536> chunk;
  while (text.size() <= kMaxConfigBytes) {
    const ssize_t count = ::read(file.get(), chunk.data(), chunk.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Fail(FileError(path, ErrnoText(errno), errno));
    if (count == 0) return text;
    text.append(chunk.data(), static_cast<size_t>(count));
  }
  return Fail(FileError(path, "it is larger than 1 MiB"));
}

bool IsSoftDeviceString(std::string_view text) {
  return text == kSoft || (text.starts_with(kSoft) && text[kSoft.size()] == ':');
}

Expected<SoftOptions> ParseDeviceString(std::string_view text, const ConfigReader& read_config) {
  if (!IsSoftDeviceString(text)) {
    return Fail(StringError(Quoted(text) + " is no soft device", "",
                            "write soft or soft:key=value,key=value"));
  }
  if (text.size() > kMaxStringBytes) {
    return Fail(StringError("it has more than 8192 bytes", "", "use config=FILE"));
  }
  Draft draft;
  if (text == kSoft) return Finish(std::move(draft));

  Expected<std::vector<Item>> items = ReadItems(text.substr(kSoft.size() + 1));
  if (!items) return Fail(std::move(items.error()));
  // What is wrong with the string is said before any file is touched.
  Draft trial;
  for (const Item& item : *items) {
    if (Status status = SetItem(item, trial); !status) return Fail(std::move(status.error()));
  }
  for (const Item& item : *items) {
    if (item.key->name != kConfigKey) continue;
    const std::string path(item.value);
    const Expected<std::string> config = read_config(path);
    if (!config) return Fail(config.error());
    if (Status status = ReadConfig(*config, path, draft); !status) {
      return Fail(std::move(status.error()));
    }
  }
  for (const Item& item : *items) {
    if (Status status = SetItem(item, draft); !status) return Fail(std::move(status.error()));
  }
  return Finish(std::move(draft));
}

Expected<SoftOptions> ParseConfig(std::string_view text, std::string_view file) {
  Draft draft;
  if (Status status = ReadConfig(text, file, draft); !status) {
    return Fail(std::move(status.error()));
  }
  return Finish(std::move(draft));
}

}  // namespace verbscope::soft
