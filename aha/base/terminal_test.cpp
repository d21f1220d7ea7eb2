#include "aha/base/terminal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace aha {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Align = TextTable::Align;

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TextTable two_methods() {
  TextTable table({{"method", Align::kLeft}, {"score"}, {"time", Align::kRight, false}});
  table.row({"rise:masks=4000:cells=12:blur=3", "0.5", "12.0 ms"}, Style::kBold);
  table.row({"aha", "10.25", "1 s"});
  return table;
}

TEST(Terminal, LongNamesAreShortenedInTheMiddle) {
  EXPECT_EQ(shortened("abcdefghij", 10), "abcdefghij");
  EXPECT_EQ(shortened("abcdefghij", 5), "ab…ij");
  EXPECT_EQ(shortened("ääääääöööööö", 5), "ää…öö") << "code points, not bytes";
  EXPECT_EQ(shortened("abcdefghij", 0), "abcdefghij");
}

TEST(Terminal, ParagraphsKeepTheirWidthAndIndent) {
  const std::string text = wrapped("one two three four five", 12, 4);
  EXPECT_EQ(text, "one two\n    three\n    four\n    five");
  EXPECT_EQ(wrapped("one two three", 0, 4), "one two three");
  EXPECT_EQ(wrapped("see rise:masks=20:cells=3 there", 14, 2), "see rise:\n  masks=20:\n  cells=3\n  there")
      << "a word that is too long is broken at a colon";
}

TEST(Terminal, TablesAreAligned) {
  const auto lines = lines_of(two_methods().text(0, false));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].find("score") + 5, lines[1].find("0.5") + 3) << "numbers end in one column";
  EXPECT_EQ(lines[1].find("0.5") + 3, lines[2].find("10.25") + 5);
}

TEST(Terminal, TablesFitTheirWidth) {
  const TextTable table = two_methods();
  EXPECT_TRUE(table.fits(40)) << "without the time";
  EXPECT_FALSE(table.fits(30));
  for (const size_t width : {24u, 30u, 40u, 60u})
    for (const auto& line : lines_of(table.text(width, false, 2))) EXPECT_LE(columns_of(line), width) << line;
  EXPECT_THAT(table.text(60, false), HasSubstr("time"));
  const std::string narrow = table.text(24, false);
  EXPECT_THAT(narrow, Not(HasSubstr("time"))) << "what can be missed goes first";
  EXPECT_THAT(narrow, HasSubstr("…"));
  EXPECT_THAT(narrow, HasSubstr("10.25")) << "numbers are never cut";
}

TEST(Terminal, ColumnsWithoutContentAreLeftOut) {
  TextTable table({{"method", Align::kLeft}, {"score"}, {"dropped", Align::kRight, false}});
  table.row({"aha", "", ""});
  EXPECT_THAT(table.text(0, false), HasSubstr("score"));
  EXPECT_THAT(table.text(0, false), Not(HasSubstr("dropped")));
}

TEST(Terminal, ColorsOnlyWhereAskedFor) {
  EXPECT_THAT(two_methods().text(0, false), Not(HasSubstr("\033")));
  EXPECT_THAT(two_methods().text(0, true), HasSubstr("\033[1m"));
  EXPECT_EQ(styled("x", Style::kError, false), "x");
}

}  // namespace
}  // namespace aha
