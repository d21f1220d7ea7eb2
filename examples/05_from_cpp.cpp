// The library from C++, with one header and without libtorch: maps of two methods, and which is the better.
//
//   g++ -std=c++17 05_from_cpp.cpp $(pkg-config --cflags --libs aha) && ./a.out cifar10-vit4 photo.png
#include <aha/aha.h>

#include <iostream>

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: " << argv[0] << " MODEL IMAGE...\n";
    return 2;
  }
  try {
    aha::SessionOptions options;
    options.quiet = true;
    const aha::Session session(options);
    const aha::Model model = session.load(argv[1]);
    std::vector<aha::Image> images;
    for (int i = 2; i < argc; ++i) images.push_back(aha::Image::read(argv[i]));

    std::vector<aha::Maps> maps;
    for (const char* method : {"aha", "gradient"}) {
      aha::ExplainOptions how;
      how.method = method;
      how.score = false;
      aha::Maps of_method{method, {}};
      for (const aha::Explained& e : model.explain(images, how)) {
        std::cout << method << ": " << e.class_name << " " << e.probability << "\n";
        of_method.values.insert(of_method.values.end(), e.map.begin(), e.map.end());
      }
      maps.push_back(std::move(of_method));
    }
    const auto size = model.size();
    const auto result = model.evaluate(images, maps, size, size, {}, {{"metrics", "ins-del"}});
    for (size_t m = 0; m < maps.size(); ++m)
      std::cout << "ins-del of " << maps[m].name << ": " << result.value("ins-del", m).mean << "\n";
  } catch (const aha::Error& error) {
    std::cerr << error.what() << "\n";
    return static_cast<int>(error.kind());
  }
}
