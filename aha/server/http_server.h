// cpp-httplib's server with bounds of our own on connections and time.
//
// httplib gives each connection a thread and a timeout to each read, so that a client that sends a byte now
// and then keeps its thread for ever. Here a request has to arrive whole, and an answer has to be taken,
// within one time limit; connections are counted, and what is too many gets 503 at once; between two
// requests a connection may be idle for a while.
#pragma once

#include <httplib.h>

#include <atomic>
#include <memory>

#include "aha/server/limits.h"

namespace aha {

class HttpServer : public httplib::Server {
 public:
  explicit HttpServer(const ServerLimits& limits);

  // Listens on the port, 0 = any that is free; returns it. Work error where it cannot.
  int bind(const std::string& host, int port);
  // Serves until stop_all(); all connections are closed then.
  void serve();
  void stop_all();
  bool stopping() const { return stopping_; }

 private:
  bool process_and_close_socket(socket_t socket) override;

  const ServerLimits limits_;
  std::atomic<bool> stopping_ = false;
  // Of bodies in memory. Shared: a job may hold its body for longer than the server lives.
  std::shared_ptr<std::atomic<int64_t>> body_bytes_ = std::make_shared<std::atomic<int64_t>>(0);
};

// Of the request that the calling thread answers. The rest of its body is not read: the connection is closed
// behind the answer.
void close_after_answer();
// Whether the client of the calling thread's request has gone.
bool client_gone();

// Room for the body of the calling thread's request, among all bodies that are in memory; false where there
// is none now. It is given back when the request has been answered and nobody holds it any more.
bool reserve_body(int64_t bytes);
std::shared_ptr<void> reserved_body();

}  // namespace aha
