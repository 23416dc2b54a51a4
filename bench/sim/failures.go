package sim

import (
	"fmt"
	"math/rand/v2"
)

// Failure is a kind of link that fails.
type Failure string

// The kinds: links between core and aggregation switches, those within a pod,
// and any.
const (
	FailCore   Failure = "core"
	FailPod    Failure = "pod"
	FailRandom Failure = "random"
)

// Failures are all of them.
var Failures = []Failure{FailCore, FailPod, FailRandom}

// LinksOf returns the links of a kind, as indices in Links.
func (t *Topology) LinksOf(kind Failure) ([]int, error) {
	var list []int
	for i, l := range t.Links {
		core := t.Switches[l.A.Switch].Layer == Core || t.Switches[l.B.Switch].Layer == Core
		none := t.Switches[l.A.Switch].Layer == NoLayer
		switch kind {
		case FailRandom:
		case FailCore:
			if !core {
				continue
			}
		case FailPod:
			if core || none {
				continue
			}
		default:
			return nil, fmt.Errorf("link failure %q: want one of %v", kind, Failures)
		}
		list = append(list, i)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("topology %s has no link of the kind %q", t.Name, kind)
	}
	return list, nil
}

// PickLinks returns n links of a kind that fail one after the other, drawn with
// replacement, as each is mended before the next fails. The same seed gives the
// same links.
func (t *Topology) PickLinks(kind Failure, n int, seed uint64) ([]int, error) {
	list, err := t.LinksOf(kind)
	if err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(seed, uint64(len(list))))
	picked := make([]int, n)
	for i := range picked {
		picked[i] = list[rng.IntN(len(list))]
	}
	return picked, nil
}
