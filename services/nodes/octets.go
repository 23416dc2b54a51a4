package nodes

import (
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
)

// Bounds of the memory that reports hold, in octets: enough for an agent's most
// nodes with a hundred ports each. Whoever may report at all may make nodes up:
// those whose switches have never been here have a share of their own.
const (
	mostOfAgent   = 32 << 20
	mostOfUnknown = 64 << 20
	mostOfAll     = 256 << 20
)

// forgottenUnknown is how many times Stale a node is remembered that is not heard of
// and whose switch has never been here.
const forgottenUnknown = 12

// held is how many octets reports hold.
type held struct {
	agents       map[string]int
	unknown, all int
}

// octetsOf returns how many octets a report takes: its texts, and what Go adds for
// each port.
func octetsOf(r *api.NodeReport) int { return 512 + proto.Size(r) + 256*len(r.Ports) }

// full returns which bound a report would exceed, in place of what is held of its
// node, nil if there is none; empty: none.
func (h *held) full(agent string, n *node, r *api.NodeReport, known bool) string {
	more := octetsOf(r)
	ofAgent, ofAll, unknown := more, more, more
	if n != nil {
		ofAll -= n.octets
		if n.agent == agent {
			ofAgent -= n.octets
		}
		if !n.known {
			unknown -= n.octets
		}
	}
	switch {
	case ofAgent > 0 && h.agents[agent]+ofAgent > mostOfAgent:
		return "the reports of " + agent + " take as much memory as those of one agent may; have several agents"
	case ofAll > 0 && h.all+ofAll > mostOfAll:
		return "the reports of all nodes take as much memory as they may"
	case !known && unknown > 0 && h.unknown+unknown > mostOfUnknown:
		return "the reports of nodes whose switches are not connected take as much memory as they may; connect the switch first"
	}
	return ""
}

// add counts what is held of a node, and drop does so no more.
func (h *held) add(n *node) {
	n.octets = octetsOf(n.report)
	h.count(n, n.octets)
}

func (h *held) drop(n *node) {
	h.count(n, -n.octets)
	n.octets = 0
	if h.agents[n.agent] == 0 {
		delete(h.agents, n.agent)
	}
}

func (h *held) count(n *node, octets int) {
	h.all += octets
	h.agents[n.agent] += octets
	if !n.known {
		h.unknown += octets
	}
}
