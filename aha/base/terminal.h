// Text for a terminal: its width, colors where they are wanted, tables that fit, paragraphs, long names
// shortened in the middle. Lengths count code points.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace aha {

// Columns of the terminal behind this file descriptor (1 = stdout, 2 = stderr); 0 = it is none, text may be
// of any width.
int terminal_width(int descriptor);

// A terminal that is not dumb, and NO_COLOR is unset or empty (no-color.org).
bool wants_color(int descriptor);

enum class Style { kPlain, kBold, kDim, kGood, kWarning, kError };
std::string styled(std::string_view text, Style style, bool color);

size_t columns_of(std::string_view text);

// "a/very/long/…/name.png": at most `most` columns; 0 = any.
std::string shortened(std::string_view text, size_t most);

// Words of `text` in lines of at most `width` columns (0 = one line); each line but the first is indented.
// The first one begins at column `indent`, too: what stands before it is the caller's.
std::string wrapped(std::string_view text, size_t width, size_t indent);

// Rows under titles, aligned, two blanks between columns. A column that can be missed and is empty is left
// out. Where they are wider than the terminal, columns that can be missed are left out, the last first, then
// texts are shortened in the middle.
class TextTable {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kRight;
    bool needed = true;  // false = may be left out
  };
  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  void row(std::vector<std::string> cells, Style style = Style::kPlain);
  void heading(std::string text);  // a line of its own between rows

  // Whether the columns that are needed can be shown without anything being shortened.
  bool fits(size_t width) const;
  // Each line begins with `indent` blanks; width 0 = any.
  std::string text(size_t width, bool color, size_t indent = 0) const;

 private:
  struct Row {
    std::vector<std::string> cells;  // one cell = a heading
    Style style = Style::kPlain;
    bool heading = false;
  };
  std::vector<size_t> widths() const;

  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

}  // namespace aha
