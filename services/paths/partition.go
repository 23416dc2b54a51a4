package paths

import (
	"fmt"
	"maps"
	"slices"

	"github.com/weft-sdn/weft/flow"
)

// partitions says which switches belong to which partition.
type partitions struct {
	lists []switches
	rest  string // the partition of switches in no list; empty: none
}

// switches is the list of one partition.
type switches struct {
	partition string
	flow.SwitchList
}

// partitions reads the lists of the configuration.
func (c *Config) partitions() (*partitions, error) {
	p := &partitions{}
	if err := p.add(c.Partition, "switches", c.Switches); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(c.Elsewhere)) {
		if err := p.add(name, "elsewhere: "+name, c.Elsewhere[name]); err != nil {
			return nil, err
		}
	}
	if len(c.Switches) == 0 && p.rest == "" {
		p.rest = c.Partition
	}
	return p, nil
}

func (p *partitions) add(partition, key string, items []string) error {
	list, err := flow.ParseSwitchList(items)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", key, err)
	case list.Rest && p.rest != "" && p.rest != partition:
		return fmt.Errorf("%s: %s is in the list of %s already; want it in one", key, flow.Rest, p.rest)
	case list.Rest:
		p.rest = partition
	}
	p.lists = append(p.lists, switches{partition, list})
	return nil
}

// of returns the partition of a switch, empty if it is of none.
func (p *partitions) of(d flow.DPID) string {
	for _, l := range p.lists {
		if l.Names(d) {
			return l.partition
		}
	}
	return p.rest
}
