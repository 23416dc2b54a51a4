package lab

import (
	"slices"

	"github.com/weft-sdn/weft/lab/topology"
)

// task is something that Apply does. It may be done again.
type task struct {
	topology.Item
	Do   string   `json:"do"` // doAdd, doDelete or doChange
	Work workKind `json:"work"`
	Wire *wire    `json:"wire,omitempty"` // to be removed
	ID   int      `json:"id,omitempty"`   // of the wire to be made or changed
	Of   string   `json:"of,omitempty"`   // the bridge to be removed
	Gone []string `json:"gone,omitempty"` // internal ports to be removed
}

const (
	doAdd    = "added"
	doDelete = "deleted"
	doChange = "changed"
)

// workKind is what is done, in this order.
type workKind int

const (
	workUnwire workKind = iota
	workDeleteHost
	workDeleteSwitch
	workAddSwitch
	workControl
	workSetSwitch
	workControllers
	workAddHost
	workWire
	workShape
	workNode
	workAddresses
	workManage
)

// pending reports whether an apply is at work on a switch.
func (s *state) pending(name string) bool {
	return slices.ContainsFunc(s.Todo, func(t task) bool { return t.Item == topology.Item{Kind: topology.ItemSwitch, Name: name} })
}
