#include "aha/image/font_data.h"

// AHA_FONT and AHA_FONT_BOLD are paths that CMakeLists.txt sets for this file alone.
asm(".pushsection .rodata\n"
    ".balign 16\n"
    "aha_font_begin: .incbin \"" AHA_FONT
    "\"\n"
    "aha_font_end:\n"
    ".balign 16\n"
    "aha_font_bold_begin: .incbin \"" AHA_FONT_BOLD
    "\"\n"
    "aha_font_bold_end:\n"
    ".global aha_font_begin, aha_font_end, aha_font_bold_begin, aha_font_bold_end\n"
    ".hidden aha_font_begin, aha_font_end, aha_font_bold_begin, aha_font_bold_end\n"
    ".popsection\n");

extern "C" {
[[gnu::visibility("hidden")]] extern const uint8_t aha_font_begin[], aha_font_end[], aha_font_bold_begin[],
    aha_font_bold_end[];
}

namespace aha {

std::span<const uint8_t> font_file(bool bold) {
  return bold ? std::span(aha_font_bold_begin, aha_font_bold_end) : std::span(aha_font_begin, aha_font_end);
}

}  // namespace aha
