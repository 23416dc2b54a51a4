package deploy

import (
	"strings"

	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/flow"
)

// stray reports whether a service of this process should ignore an event. Such
// an event says that a switch, or something of it, is gone, but a plan has
// moved the switch to another partition than the publisher's, and its new owner
// publishes about it. Services of the former partition should receive the
// event; clustered services and those of all partitions should not.
func (v *view) stray(service string, sub *local.Subject, key string, event any, partition string) bool {
	return (v.mine.Partition == "" || v.parts.worksAsOne(service)) && v.disowned(sub, key, event, partition)
}

// disowned reports whether an event says that something is gone that belongs to
// a switch of another partition than the publisher's.
func (v *view) disowned(sub *local.Subject, key string, event any, partition string) bool {
	if partition == "" || v.current == nil || !sub.Decl.GoneBy(event) {
		return false
	}
	text, _, _ := strings.Cut(key, "/")
	sw, err := flow.ParseDPID(text)
	if err != nil || len(text) != 16 {
		return false
	}
	owner := v.current.InForce().PartitionOf(sw)
	return owner != "" && owner != partition && v.current.InForce().Partition(partition) != nil
}
