package paths

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"weft/flow"
)

// everyOther stands, in a list of switches, for those in no other list, as in
// the partitions of a plan.
const everyOther = "rest"

// partitions is which switches are of which partition.
type partitions struct {
	spans []span
	rest  string // the partition of switches in no span; empty: they are of none
}

// span is a range of switches, both ends included.
type span struct {
	first, last flow.DPID
	partition   string
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

func (p *partitions) add(partition, key string, list []string) error {
	for _, item := range list {
		if item == everyOther {
			if p.rest != "" && p.rest != partition {
				return fmt.Errorf("%s: %s is in the list of %s already; want it in one", key, everyOther, p.rest)
			}
			p.rest = partition
			continue
		}
		from, to, isRange := strings.Cut(item, "-")
		if !isRange {
			to = from
		}
		first, err := flow.ParseDPID(strings.TrimSpace(from))
		last, err2 := flow.ParseDPID(strings.TrimSpace(to))
		if err != nil || err2 != nil || last < first {
			return fmt.Errorf("%s: %q: want a switch or a range of switches in hexadecimal digits, such as 10 or 1-8, or %s", key, item, everyOther)
		}
		p.spans = append(p.spans, span{first, last, partition})
	}
	return nil
}

// of returns the partition of a switch, empty if it is of none.
func (p *partitions) of(d flow.DPID) string {
	for _, s := range p.spans {
		if s.first <= d && d <= s.last {
			return s.partition
		}
	}
	return p.rest
}
