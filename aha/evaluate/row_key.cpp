#include "aha/evaluate/row_key.h"

#include "aha/base/error.h"
#include "aha/base/files.h"

namespace aha {

std::string key_from_json(const nlohmann::json& facts) {
  const std::string text = facts.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return sha256_of_bytes(std::as_bytes(std::span(text))).substr(0, 32);
}

std::string content_key(const Image& image) {
  return key_from_json({image.width, image.height, sha256_of_bytes(std::as_bytes(std::span(image.rgb)))});
}

namespace {

// Facts of the settings that no map depends on.
nlohmann::json without_metrics(nlohmann::json settings) {
  for (const char* fact : {"protocol", "references", "score", "order"}) settings.erase(fact);
  return settings;
}

}  // namespace

RowKeys::RowKeys(nlohmann::json settings, const nlohmann::json& card)
    : settings_(std::move(settings)),
      shared_(key_from_json(settings_)),
      of_maps_(key_from_json(without_metrics(settings_))),
      card_(card.is_null() ? "" : key_from_json(card)) {}

std::string RowKeys::row(const KeyedImage& image, const Method& method, const std::string& explained) const {
  return key(shared_, image, method, explained);
}

std::string RowKeys::map(const KeyedImage& image, const Method& method, const std::string& explained) const {
  return key(of_maps_, image, method, explained);
}

std::string RowKeys::value(const KeyedImage& image, const Method& method, const std::string& explained,
                           const std::string& measure, bool annotated) const {
  const nlohmann::json facts = {of_maps_, settings_.at("references"), settings_.at("score"), measure,
                                annotated ? image.annotation : ""};
  return key(key_from_json(facts), image, method, explained);
}

std::string RowKeys::key(const std::string& settings, const KeyedImage& image, const Method& method,
                         const std::string& explained) const {
  nlohmann::json facts = {settings,
                          card_of(method),
                          method.identity(),
                          image.id,
                          image.content,
                          explained,
                          explained == "truth" ? image.label : -1};
  if (const std::string more = method.depends_on(image.id); !more.empty()) facts.push_back(more);
  return key_from_json(facts);
}

std::string RowKeys::image(const KeyedImage& image) const {
  return key_from_json({settings_.at("input"), image.id, image.content});
}

std::string RowKeys::timing(const Method& method, int threads, const std::string& cpu) const {
  nlohmann::json facts = {card_of(method), method.identity(), threads, cpu};
  for (const char* fact : {"target", "input", "precision", "device"}) facts.push_back(settings_.at(fact));
  return key_from_json(facts);
}

}  // namespace aha
