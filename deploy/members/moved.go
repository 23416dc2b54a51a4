package members

import (
	"strings"

	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/flow"
)

// Stray reports whether a service of this process should ignore an event. Such
// an event says that a switch, or something of it, is gone, but a plan has
// moved the switch to another partition than the publisher's, and its new owner
// publishes about it. Services of the former partition should receive the
// event; clustered services and those of all partitions should not.
func (v *View) Stray(service string, sub *local.Subject, key string, event any, partition string) bool {
	return (v.Mine.Partition == "" || v.Parts.Clustered(service)) && v.Disowned(sub, key, event, partition)
}

// Disowned reports whether an event says that something is gone that belongs to
// a switch of another partition than the publisher's.
func (v *View) Disowned(sub *local.Subject, key string, event any, partition string) bool {
	if partition == "" || v.Current == nil || !sub.Decl.GoneBy(event) {
		return false
	}
	text, _, _ := strings.Cut(key, "/")
	sw, err := flow.ParseDPID(text)
	if err != nil || len(text) != 16 {
		return false
	}
	owner := v.Current.InForce().PartitionOf(sw)
	return owner != "" && owner != partition && v.Current.InForce().Partition(partition) != nil
}
