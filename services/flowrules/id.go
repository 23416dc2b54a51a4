package flowrules

import (
	"hash/maphash"

	"github.com/weft-sdn/weft/flow"
)

// An entryID stands for the flow.EntryKey of an entry of one switch, which is
// twenty times as long: two of its hashes. The seeds are secret, so nobody can
// look for two keys with the same one, and among as many entries as a switch can
// have none will be found by chance (2^-90 for a million).
type entryID [2]uint64

var idSeeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

// idOf returns the id of an entry.
func idOf(e *flow.Entry) entryID {
	k := e.Key()
	return entryID{maphash.Comparable(idSeeds[0], k), maphash.Comparable(idSeeds[1], k)}
}
