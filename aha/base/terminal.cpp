#include "aha/base/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace aha {
namespace {

constexpr size_t kBetween = 2;     // blanks between columns
constexpr size_t kNarrowest = 10;  // a text is not shortened below this

bool begins_code_point(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
}

// Bytes of the first or last `columns` code points.
size_t bytes_of_first(std::string_view text, size_t columns) {
  size_t at = 0;
  for (; at < text.size(); ++at)
    if (begins_code_point(text[at]) && columns-- == 0) break;
  return at;
}

std::string padded(const std::string& text, size_t width, TextTable::Align align) {
  const std::string blanks(width - std::min(width, columns_of(text)), ' ');
  return align == TextTable::Align::kLeft ? text + blanks : blanks + text;
}

size_t total(const std::vector<size_t>& widths) {
  return std::accumulate(widths.begin(), widths.end(), kBetween * (widths.size() - 1));
}

}  // namespace

int terminal_width(int descriptor) {
  if (!isatty(descriptor)) return 0;
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

bool wants_color(int descriptor) {
  const char *none = std::getenv("NO_COLOR"), *kind = std::getenv("TERM");
  return isatty(descriptor) && (!none || !*none) && !(kind && std::string_view(kind) == "dumb");
}

std::string styled(std::string_view text, Style style, bool color) {
  // In the order of the enumeration.
  static constexpr const char* kCodes[] = {"", "1", "2", "32", "33", "1;31"};
  if (!color || style == Style::kPlain || text.empty()) return std::string(text);
  return fmt::format("\033[{}m{}\033[0m", kCodes[static_cast<size_t>(style)], text);
}

size_t columns_of(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), begins_code_point));
}

std::string shortened(std::string_view text, size_t most) {
  const size_t columns = columns_of(text);
  if (most == 0 || columns <= most) return std::string(text);
  // The end tells more of a path: it gets the larger half.
  const size_t first = (most - 1) / 2, last = most - 1 - first;
  return fmt::format("{}…{}", text.substr(0, bytes_of_first(text, first)),
                     text.substr(bytes_of_first(text, columns - last)));
}

std::string wrapped(std::string_view text, size_t width, size_t indent) {
  std::string out;
  size_t column = indent;
  bool blank = false;  // before the next word
  const auto put = [&](std::string_view word) {
    const size_t needs = columns_of(word);
    if (!out.empty() && width > 0 && column + blank + needs > width) {
      out += '\n';
      out.append(indent, ' ');
      column = indent;
    } else if (blank) {
      out += ' ', ++column;
    }
    out += word;
    column += needs;
  };
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    std::string_view word = text.substr(at, end - at);
    // A word that no line can hold goes on in the next one, behind a colon or a slash.
    while (width > indent && columns_of(word) > width - indent) {
      const size_t cut = word.substr(0, bytes_of_first(word, width - indent)).find_last_of(":/,");
      if (cut == std::string_view::npos) break;
      put(word.substr(0, cut + 1));
      word.remove_prefix(cut + 1);
      blank = false;
    }
    put(word);
    blank = true;
    at = end + 1;
  }
  return out;
}

void TextTable::row(std::vector<std::string> cells, Style style) {
  cells.resize(columns_.size());
  rows_.push_back({std::move(cells), style, false});
}

void TextTable::heading(std::string text) {
  rows_.push_back({{std::move(text)}, Style::kDim, true});
}

std::vector<size_t> TextTable::widths() const {
  std::vector<size_t> out;
  for (size_t c = 0; c < columns_.size(); ++c) {
    size_t width = columns_of(columns_[c].title);
    for (const Row& row : rows_)
      if (!row.heading) width = std::max(width, columns_of(row.cells[c]));
    out.push_back(width);
  }
  return out;
}

bool TextTable::fits(size_t width) const {
  std::vector<size_t> needed, all = widths();
  for (size_t c = 0; c < columns_.size(); ++c)
    if (columns_[c].needed) needed.push_back(all[c]);
  return width == 0 || total(needed) <= width;
}

std::string TextTable::text(size_t width, bool color, size_t indent) const {
  const size_t room = width == 0 ? SIZE_MAX : width - std::min(width, indent);
  std::vector<size_t> wide = widths(), shown(columns_.size());
  std::iota(shown.begin(), shown.end(), size_t{0});
  const auto needed = [&] {
    std::vector<size_t> of_shown;
    for (const size_t c : shown) of_shown.push_back(wide[c]);
    return total(of_shown);
  };
  const auto empty = [&](size_t c) {
    return !columns_[c].needed && std::all_of(rows_.begin(), rows_.end(), [&](const Row& row) {
      return row.heading || row.cells[c].empty();
    });
  };
  std::erase_if(shown, empty);
  for (size_t i = shown.size(); i-- > 0 && needed() > room;)
    if (!columns_[shown[i]].needed) shown.erase(shown.begin() + static_cast<ptrdiff_t>(i));
  while (needed() > room) {
    size_t longest = SIZE_MAX;
    for (const size_t c : shown)
      if (columns_[c].align == Align::kLeft && wide[c] > kNarrowest &&
          (longest == SIZE_MAX || wide[c] > wide[longest]))
        longest = c;
    if (longest == SIZE_MAX) break;  // numbers are never cut
    --wide[longest];
  }
  std::string out;
  const auto line = [&](const std::vector<std::string>& cells, Style style) {
    std::string all;
    for (size_t i = 0; i < shown.size(); ++i) {
      const size_t c = shown[i];
      all += (i ? std::string(kBetween, ' ') : "") +
             padded(columns_[c].align == Align::kLeft ? shortened(cells[c], wide[c]) : cells[c], wide[c],
                    columns_[c].align);
    }
    all.erase(all.find_last_not_of(' ') + 1);
    out += std::string(indent, ' ') + styled(all, style, color) + "\n";
  };
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);
  if (std::any_of(titles.begin(), titles.end(), [](const auto& title) { return !title.empty(); }))
    line(titles, Style::kBold);
  for (const Row& row : rows_) {
    if (row.heading)
      out += std::string(indent, ' ') +
             styled(shortened(row.cells[0], width == 0 ? 0 : room), row.style, color) + "\n";
    else
      line(row.cells, row.style);
  }
  return out;
}

}  // namespace aha
