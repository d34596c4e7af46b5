/// @file clock.h
/// @brief What threads know of each other: vector clocks with a component for each thread, and for each thing that works beside them.
///
/// Component i of `Seen`, i below `cluster_threads`: the events of thread i that are visible. `cluster_threads` + i: those that are visible to the
/// asynchronous proxy as well, because thread i came to a `fence.proxy.async` after them. Behind these: the events of actors, which are barriers in
/// shared memory (copies whose bytes they count: an event a phase), bulk stores of a thread and products of a warpgroup (an event a group).
/// Actors do what they do by the asynchronous proxy, all but `st.async`: what of that is visible there is the component after its own.
#ifndef AIT_EMULATOR_CLOCK_H_
#define AIT_EMULATOR_CLOCK_H_

#include <memory>
#include <string>
#include <vector>

#include "emulator/emulator.h"

namespace ait::emulator {

/// Events up to these are visible (Lamport's happened-before, as a vector). What lies past the end is 0.
using Seen = std::vector<uint32_t>;
using SeenPointer = std::shared_ptr<const Seen>;

inline uint32_t event_of(const Seen& seen, uint32_t who) { return who < seen.size() ? seen[who] : 0; }

struct Fiber;

extern uint32_t cluster_threads;

/// @brief Forgets all actors.
void start_clocks(uint32_t threads_of_block, uint32_t blocks);
/// @brief A new component. @param name what its events are, for messages
/// @param parts how many components there are in a row of which each must be known: the warps of a warpgroup, of which each knows its own
uint32_t add_actor(std::string name, uint32_t parts = 1);
/// @brief A new component for what is done by the ordinary proxy, and one after it.
uint32_t add_ordinary_actor(std::string name);
/// @brief Who has this component, for messages: "thread 5", "thread 5 of block 1" of a cluster, or the name of an actor.
std::string name_of(uint32_t who);
inline bool is_thread(uint32_t who) { return who < cluster_threads; }

struct Actor {
  std::string name;
  uint32_t parts;
  bool ordinary;
};
extern std::vector<Actor> actors;  ///< from component 2 * cluster_threads on
inline const Actor& actor_at(uint32_t who) { return actors[who - 2 * cluster_threads]; }
/// @brief The component of those events that are visible to the asynchronous proxy: another, if they are done by the ordinary one.
inline uint32_t published(uint32_t who) { return is_thread(who) ? cluster_threads + who : actor_at(who).ordinary ? who + 1 : who; }

SeenPointer joined(const SeenPointer& a, const SeenPointer& b);
/// @brief Everything that one of these threads knows or did, all of them know.
void join(const std::vector<Fiber*>& threads);
/// @brief What a thread knows, its own events included; the next one is later.
SeenPointer release(Fiber& fiber);
void learn(Fiber& fiber, const SeenPointer& what);
void learn(Fiber& fiber, uint32_t actor, uint32_t event);
/// @brief fence.proxy.async: what the thread did, and what `st.async` did that it knows of, is visible to the asynchronous proxy, to all that
/// learn of it. PTX is content with a fence of any thread that knows of an access; here each thread must fence its own, before others know of them.
void publish(Fiber& fiber);
/// @brief What all of these threads know.
Seen common(const std::vector<Fiber*>& threads);

}  // namespace ait::emulator
#endif  // AIT_EMULATOR_CLOCK_H_
