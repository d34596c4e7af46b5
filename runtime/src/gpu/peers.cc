/// @file peers.cc
/// @brief Rooms of cards, exchanged as handles of CUDA IPC.
///
/// A handle opens memory of another process of this host whose card this one reaches over NVLink or PCIe. The members first tell each other their
/// handles, then whether they could open all of them, so that all use the rooms, or none. Nothing frees a room: another process may write it.
#include "gpu/peers.h"

#include <cstdlib>
#include <cstring>
#include <fstream>

namespace ait::runtime {
namespace {

constexpr size_t kSlots = size_t(64) << 20;  ///< bytes of all slots of a room

std::string problem(const char* what, gpu::Error error) {
  (void)GPU(GetLastError)();
  return std::string(what) + ": " + GPU(GetErrorString)(error);
}

#if !defined(AIT_HIP)
/// What a member tells the others.
struct Offer {
  char host[64];  ///< the boot of the machine; empty if this member has no room
  char card[32];
  GPU(IpcMemHandle_t) handle;
};

/// A text of this boot of this machine; empty if there is none.
std::string boot() {
  std::string found;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> found;
  return found;
}

/// Makes a room, and writes what the others need to open it; a reason if it cannot.
std::string offer_room(int64_t members, ait_peer_room_v1** room, Offer* offer) {
  if (Peers::is_off()) return "AIT_PEER_MEMORY is 0";
  if (members > AIT_MOST_PEERS) return "a group has " + std::to_string(members) + " members, more than " + std::to_string(AIT_MOST_PEERS);
  const std::string host = boot();
  if (host.empty() || host.size() >= sizeof(offer->host)) return "this machine has no boot id";
  int device = 0;
  (void)GPU(GetDevice)(&device);
  if (const gpu::Error error = GPU(DeviceGetPCIBusId)(offer->card, sizeof(offer->card), device); error != gpu::kSuccess) {
    return problem("naming the card failed", error);
  }
  void* made = nullptr;
  const size_t bytes = sizeof(ait_peer_room_v1) + kSlots;
  if (const gpu::Error error = GPU(Malloc)(&made, bytes); error != gpu::kSuccess) return problem("allocating a room failed", error);
  gpu::Error error = GPU(Memset)(made, 0, bytes);
  if (error == gpu::kSuccess) error = GPU(DeviceSynchronize)();
  if (error == gpu::kSuccess) error = GPU(IpcGetMemHandle)(&offer->handle, made);
  if (error != gpu::kSuccess) {
    (void)GPU(Free)(made);
    return problem("sharing memory with other processes failed", error);
  }
  *room = static_cast<ait_peer_room_v1*>(made);
  std::strcpy(offer->host, host.c_str());
  return "";
}

/// Opens the rooms of the others; a reason if it cannot.
std::string open_rooms(const std::vector<Offer>& offers, int64_t place, ait_peer_memory_v1* memory) {
  for (size_t i = 0; i < offers.size(); ++i) {
    if (offers[i].host[0] == 0) return "member " + std::to_string(i) + " shares no memory";
    if (std::strcmp(offers[i].host, offers[size_t(place)].host) != 0) return "member " + std::to_string(i) + " is on another machine";
    for (size_t j = 0; j < i; ++j) {
      if (std::strcmp(offers[i].card, offers[j].card) == 0) return "members " + std::to_string(j) + " and " + std::to_string(i) + " have one card";
    }
  }
  for (size_t i = 0; i < offers.size(); ++i) {
    if (int64_t(i) == place) continue;
    void* opened = nullptr;
    const gpu::Error error = GPU(IpcOpenMemHandle)(&opened, offers[i].handle, GPU(IpcMemLazyEnablePeerAccess));
    if (error != gpu::kSuccess) return problem(("opening the memory of member " + std::to_string(i) + " failed").c_str(), error);
    memory->rooms[i] = static_cast<ait_peer_room_v1*>(opened);
  }
  return "";
}
#endif

/// The recording of a stream that is recorded now, counted from 1; 0 if it is not.
unsigned long long capture_of(gpu::Stream stream) {
  GPU(StreamCaptureStatus) status = GPU(StreamCaptureStatusNone);
  unsigned long long number = 0;
  if (GPU(StreamGetCaptureInfo)(stream, &status, &number) != gpu::kSuccess) (void)GPU(GetLastError)();
  return status == GPU(StreamCaptureStatusNone) ? 0 : number + 1;
}

}  // namespace

bool Peers::is_off() {
  const char* const text = std::getenv("AIT_PEER_MEMORY");
  return text != nullptr && std::strcmp(text, "0") == 0;
}

uint32_t* new_stop() {
#if defined(AIT_HIP)
  return nullptr;
#else
  void* made = nullptr;
  if (GPU(HostAlloc)(&made, sizeof(uint32_t), GPU(HostAllocPortable) | GPU(HostAllocMapped)) != gpu::kSuccess) {
    (void)GPU(GetLastError)();
    return nullptr;
  }
  std::memset(made, 0, sizeof(uint32_t));
  return static_cast<uint32_t*>(made);
#endif
}

std::string Peers::open(int64_t members, int64_t place, const uint32_t* stop, const Exchange& exchange) {
#if defined(AIT_HIP)
  (void)members, (void)place, (void)stop, (void)exchange;
  why_ = "cards of AMD have no rooms yet";
#else
  ait_peer_memory_v1 found{};
  Offer own{};
  why_ = stop == nullptr ? "this machine shares no memory of the host with its cards" : offer_room(members, &found.rooms[place], &own);
  std::vector<Offer> offers(static_cast<size_t>(members));
  if (std::string why = exchange(&own, sizeof(own), offers.data()); !why.empty()) return why;
  if (why_.empty()) why_ = open_rooms(offers, place, &found);
  const char is_open = why_.empty() ? 1 : 0;
  std::vector<char> all(static_cast<size_t>(members));
  if (std::string why = exchange(&is_open, 1, all.data()); !why.empty()) return why;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i] == 0 && why_.empty()) why_ = "member " + std::to_string(i) + " could not open the memory of the others";
  }
  if (!why_.empty()) {
    for (int64_t i = 0; i < members && i < AIT_MOST_PEERS; ++i) {
      if (i != place && found.rooms[i] != nullptr) (void)GPU(IpcCloseMemHandle)(found.rooms[i]);
    }
    return "";
  }
  if (GPU(EventCreateWithFlags)(&launched_, GPU(EventDisableTiming)) != gpu::kSuccess) launched_ = nullptr;
  found.members = static_cast<int32_t>(members);
  found.place = static_cast<int32_t>(place);
  found.bytes = static_cast<int64_t>(kSlots) / 2 / members / 16 * 16;
  found.stop = stop;
  memory_ = found;
#endif
  return "";
}

std::string Peers::begin(gpu::Stream stream) {
  if (stream == last_ || launched_ == nullptr || capture_of(stream) != last_capture_) return "";
  const gpu::Error error = GPU(StreamWaitEvent)(stream, launched_, 0);
  return error == gpu::kSuccess ? "" : problem("waiting for the launch before failed", error);
}

std::string Peers::end(gpu::Stream stream) {
  last_ = stream;
  last_capture_ = capture_of(stream);
  if (launched_ == nullptr) return "";
  const gpu::Error error = GPU(EventRecord)(launched_, stream);
  return error == gpu::kSuccess ? "" : problem("noting a launch failed", error);
}

}  // namespace ait::runtime
