// Package place decides which shard of the control plane runs on which server
// (paper 001, sections 3.3 and 3.4): as few events as possible cross servers,
// no server has more than it can take, real-time events keep their deadlines,
// and replicas, classes and power domains stay apart.
//
// An Instance is the problem, Solve the answer, Check the judge: it recomputes
// cost and constraints from the instance alone and shares no code with what
// found the placement. Everything is pure and, for a seed, deterministic:
// budgets are counted in steps, never in seconds.
//
// plan, cmd/weft and experiments import it.
package place

import "fmt"

// Class is how a shard's work is to be treated (paper 001, section 1).
type Class uint8

// The classes. Compute shards never share a server with real-time or
// latency-sensitive ones; shards of no class share with all.
const (
	NoClass Class = iota
	RealTime
	Latency
	Compute
)

// String returns the class's name: real-time, latency-sensitive, compute or any.
func (c Class) String() string {
	switch c {
	case NoClass:
		return "any"
	case RealTime:
		return "real-time"
	case Latency:
		return "latency-sensitive"
	case Compute:
		return "compute"
	}
	return fmt.Sprintf("class %d", uint8(c))
}

// sensitive reports whether load spikes of others do harm.
func (c Class) sensitive() bool { return c == RealTime || c == Latency }

// Shard is one service's share for one partition: a vertex of the communication
// graph.
type Shard struct {
	Name      string // unique, such as "paths/east"
	Service   string // for messages only
	Partition string // for messages only
	CPU       int64  // demand, in thousandths of a CPU
	Memory    int64  // demand, in bytes
	Class     Class
	// Servers are those that it may run on, by index; nil means any. One alone
	// is a pin.
	Servers []int
	// Domain is the power source of the switches that it controls. Shards of
	// different domains never share a server (paper 001, section 3.5); "" is
	// none in particular.
	Domain string
	// Move is what moving it away from Instance.Current costs, in the unit of
	// the cost: µs of latency a second.
	Move float64
}

// Server is a machine, or a share of one.
type Server struct {
	Name   string // unique
	CPU    int64  // in thousandths of a CPU
	Memory int64  // in bytes
	Domain string // its power supply; "" is none in particular
}

// Edge is traffic between two shards, whichever way it goes.
type Edge struct {
	A, B   int     // indices into Instance.Shards
	Weight float64 // events a second
}

// Path is the way of one kind of event through shards, in order (paper 001,
// p_m). It may not come back to a shard that it has left.
type Path struct {
	Name   string
	Shards []int
	// Weight is γ of eq. 4, events a second that go this way. It counts besides
	// Edges: 0 if these have the path's traffic already.
	Weight float64
	// Deadline is the most that crossing servers may add, in µs (eq. 6); 0: none.
	// A deadline that allows nothing is any below the least delay.
	Deadline float64
}

// Instance is one placement problem. The zero value of everything but Shards
// and Servers means that there is none of it.
type Instance struct {
	Shards  []Shard
	Servers []Server
	Edges   []Edge
	Paths   []Path
	// Delay[s][t] is what an event takes longer to get from server s to server
	// t, in µs; symmetric, 0 on the diagonal. A nil matrix means 1 between any
	// two servers, so that costs count events.
	Delay [][]float64
	// Apart are sets of shards of which no two share a server: replicas.
	Apart [][]int
	// ApartDomains are sets of shards of which no two are on servers of the same
	// Domain. Servers without a domain are each a domain of their own.
	ApartDomains [][]int
	// Together are sets of shards that share one server.
	Together [][]int
	// Current is where shards are now, -1 for those that are nowhere; nil if
	// nothing runs. Moves cost Shard.Move.
	Current []int
}

// delay returns d_st.
func (in *Instance) delay(s, t int) float64 {
	switch {
	case s == t:
		return 0
	case in.Delay == nil:
		return 1
	}
	return in.Delay[s][t]
}
