// All methods by name. `NAME:key=value:key=value` sets a method's options; `blur=SIGMA_PX` smooths the maps
// of any of them, and `inverted:NAME:...` turns them round.
#pragma once

#include "aha/methods/method.h"

namespace aha {

const std::vector<MethodRecord>& method_catalog();

// Of the method that a spec names, whatever its options; of an inverted one: the method turned round. Input
// error for an unknown name.
const MethodRecord& method_record(const std::string& spec);

// "ig", "maps:FOLDER"
std::string usage_of(const MethodRecord& record);

// "For transformers"; and what methods of a kind fit: "vision transformers".
std::string heading_of(MethodKind kind);
std::string targets_of(MethodKind kind);

// What can be done to any method's maps, beside the catalog.
struct MethodForm {
  std::string spec, summary;
};
const std::vector<MethodForm>& method_forms();

// Specs as tables show them: a path without its folders ("maps:/home/me/other" is maps:other), unless two
// would then be the same.
std::vector<std::string> method_labels(const std::vector<std::string>& specs);

// A program's own method beside the bundled ones (examples/02_add_a_method.cpp). Call it before others look
// at the catalog.
void add_method(MethodRecord record);

// Input error for an unknown name or option, and for a method that does not fit the target: it says what is
// missing and which methods fit.
// `options` are set too ({"T": 3}); an option that the spec sets already is an input error.
std::unique_ptr<Method> make_method(const std::string& spec, const MethodContext& context,
                                    const nlohmann::json& options = nlohmann::json::object());

}  // namespace aha
