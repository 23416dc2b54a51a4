// Package sim is simulated OpenFlow switches, thousands in one process, for
// load and for scale: they connect to any controller over TCP or a Unix
// socket, speak OpenFlow 1.0 or 1.3 as a switch does, carry frames over a
// simulated topology, and measure how fast the controller answers packet-ins.
//
// One goroutine runs all switches of a Network over epoll, so nothing in it is
// locked and a frame crosses a link without a copy to another thread. What
// comes seldom is read and written by package openflow; packet-ins under load
// and their answers, millions a second, by the few lines of layout.go.
//
// # What counts as an answer
//
// Every packet-in of a load has an identity of its own: the number under which
// the switch keeps the packet (buffer_id), unique among the outstanding packets
// of the switch and scrambled differently for each switch; the frame carries
// the same number in its payload. An answer is a flow-mod that adds or modifies
// an entry, or a packet-out, with that buffer_id on the connection of that
// switch; or a packet-out that brings the frame itself back. A flow-mod without
// the buffer_id is no answer, for it leaves the packet where it is. Each
// packet is answered once: what comes again is a duplicate, what comes after
// the packet was given up is late, and a number never given out is wrong. The
// last is refused with the error message of a real switch. None of the three
// counts as an answer.
//
// Every answer is also looked at for where it sends the packet: to the port of
// the destination host, everywhere (flood), or elsewhere; see Counts. Whether
// the match of a flow-mod covers the packet is not looked at.
//
// The flow-mods of a load are not installed: its packets stand for those that
// no entry matches. All others are, so that a controller reads back what it
// has written.
//
// # Latency
//
// In a closed loop latency runs from the write of the batch that held the
// packet-in to the read of the batch that held its answer. At a given rate it
// runs from the time at which the packet was due, whether or not the switch
// could send it then, and packets without an answer count with the time that
// they have waited: nothing is left out because the controller was slow.
//
// # Flows and heartbeats
//
// A load is of hosts of the same switch, each switch by itself, as cbench has it;
// or, with Load.Flows, of pairs of hosts of the whole topology, each packet from
// the switch of its sender. Then the frame may be handed out anywhere: it carries
// whose it is. Beside a load the switches may ask the controller for echoes at a
// rate of their own (Beats). Links fail by kind (Topology.PickLinks).
//
// The program weft (cmd/weft) and tests may import sim. It imports flow,
// packet and openflow; no service and no part of the controller.
package sim
