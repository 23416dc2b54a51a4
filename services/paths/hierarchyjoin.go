package paths

import (
	"fmt"
	"slices"

	"github.com/weft-sdn/weft/flow"
)

// Hierarchy is all partitions of a network together, in one process: what the
// areas do with their neighbours' help, such as to find a path through several.
type Hierarchy struct {
	areas map[string]*Area
	of    func(flow.DPID) string
	share func(flow.DPID) bool
	names []string
}

// NewHierarchy returns the areas of all partitions; what it is given is that of
// each, but for the partition's name.
func NewHierarchy(partitions []string, c AreaConfig) *Hierarchy {
	if c.Shared == nil {
		c.Shared = func(flow.DPID) bool { return false }
	}
	h := &Hierarchy{areas: map[string]*Area{}, of: c.Of, share: c.Shared, names: slices.Sorted(slices.Values(partitions))}
	for _, p := range partitions {
		c.Partition = p
		h.areas[p] = NewArea(c)
	}
	return h
}

// Area returns that of a partition; nil if there is none.
func (h *Hierarchy) Area(partition string) *Area { return h.areas[partition] }

// Partitions lists the names, in order. The caller must not write to it.
func (h *Hierarchy) Partitions() []string { return h.names }

// each calls f with the areas that a switch concerns.
func (h *Hierarchy) each(d flow.DPID, f func(*Area)) {
	if h.share(d) {
		for _, p := range h.names {
			f(h.areas[p])
		}
	} else if a := h.areas[h.of(d)]; a != nil {
		f(a)
	}
}

// AddSwitch makes a switch present.
func (h *Hierarchy) AddSwitch(d flow.DPID) { h.each(d, func(a *Area) { a.AddSwitch(d) }) }

// RemoveSwitch makes a switch absent.
func (h *Hierarchy) RemoveSwitch(d flow.DPID) { h.each(d, func(a *Area) { a.RemoveSwitch(d) }) }

// Concerned returns the areas that a link between two switches concerns: that of
// each, or the one of both; and of a shared switch's link, the other end's alone
// if that is not shared.
func (h *Hierarchy) Concerned(src, dst flow.DPID) (list []*Area) {
	if h.share(src) != h.share(dst) {
		if h.share(src) {
			src = dst
		} else {
			dst = src
		}
	}
	for _, d := range []flow.DPID{src, dst} {
		if a := h.areas[h.of(d)]; a != nil && !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	return list
}

// SetLink makes one direction of a link known.
func (h *Hierarchy) SetLink(l Link) {
	for _, a := range h.Concerned(l.Src.Switch, l.Dst.Switch) {
		a.SetLink(l)
	}
}

// RemoveLink forgets one direction of a link.
func (h *Hierarchy) RemoveLink(src, dst flow.Location) {
	for _, a := range h.Concerned(src.Switch, dst.Switch) {
		a.RemoveLink(src, dst)
	}
}

// Converge makes every partition compute what has changed, and tell the others.
// It returns how many summaries they sent, and how many rows they computed.
func (h *Hierarchy) Converge() (summaries, rows int) {
	for _, p := range h.names {
		s, changed := h.areas[p].Inside()
		if !changed {
			continue
		}
		summaries++
		for _, q := range h.names {
			_, _ = h.areas[q].Learn(s) // an area's own summary is never wrong
		}
	}
	for _, p := range h.names {
		rows += h.areas[p].Outside().Rows
	}
	return summaries, rows
}

// Path returns a path from src to dst through the partitions; false if there
// is none. What hash does, Topology.Path says. An error is a path that returns to
// a switch, which partitions that have not converged may make.
func (h *Hierarchy) Path(src, dst flow.DPID, hash uint64) (Path, bool, error) {
	if home := h.areas[h.of(src)]; home == nil || !home.top.Has(src) {
		return nil, false, nil
	}
	var p Path
	seen := map[flow.DPID]bool{}
	var in flow.Port
	for at := src; at != dst; {
		if seen[at] {
			return p, false, fmt.Errorf("path from %v to %v: returns to %v, behind %v", src, dst, at, p)
		}
		seen[at] = true
		var best stance
		var by *Area
		h.each(at, func(a *Area) {
			if s, ok := a.stance(at, dst); ok && (by == nil || s.compare(best) < 0) {
				best, by = s, a
			}
		})
		if by == nil {
			return p, false, nil
		}
		out, next, ok := by.Step(at, dst, hash)
		if !ok {
			return p, false, nil
		}
		p = append(p, Hop{at, in, out})
		at, in = next.Switch, next.Port
	}
	return append(p, Hop{dst, in, 0}), true, nil
}
