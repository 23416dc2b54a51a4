package layout

import (
	"slices"

	"github.com/weft-sdn/weft/lab/topology"
)

// Task is something that Apply does. It may be done again.
type Task struct {
	topology.Item
	Do   string   `json:"do"` // doAdd, doDelete or doChange
	Work Work     `json:"work"`
	Wire *Wire    `json:"wire,omitempty"` // to be removed
	ID   int      `json:"id,omitempty"`   // of the wire to be made or changed
	Of   string   `json:"of,omitempty"`   // the bridge to be removed
	Gone []string `json:"gone,omitempty"` // internal ports to be removed
}

const (
	Added   = "added"
	Deleted = "deleted"
	Changed = "changed"
)

// Work is what is done, in this order.
type Work int

const (
	Unwire Work = iota
	DeleteHost
	DeleteSwitch
	AddSwitch
	SetControl
	SetSwitch
	SetControllers
	AddHost
	AddWire
	SetShape
	SetNode
	SetAddresses
	SetManage
)

// Pending reports whether an apply is at work on a switch.
func (s *Lab) Pending(name string) bool {
	return slices.ContainsFunc(s.Todo, func(t Task) bool { return t.Item == topology.Item{Kind: topology.ItemSwitch, Name: name} })
}
