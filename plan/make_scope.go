package plan

import (
	"fmt"
	"slices"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/flow"
)

// cut records the partitions.
func (m *model) cut() {
	cut := m.options.Cut
	if cut == nil || len(cut.Names) < 2 {
		m.sizes, m.loads = []int{len(m.network.Switches)}, []float64{1}
		return
	}
	m.names = cut.Names
	total := float64(max(m.network.Load(), 1))
	for _, part := range cut.Parts {
		m.sizes = append(m.sizes, part.Switches)
		m.loads = append(m.loads, float64(part.Load)/total)
	}
}

// partitions returns the partitions of the plan.
func (m *model) partitions() (list []Partition) {
	for i, name := range m.names {
		x := Partition{Name: name}
		for at, s := range m.network.Switches {
			if m.options.Cut.Of[at] != i {
				continue
			}
			// Unused switch numbers belong to nobody, so ranges may bridge them.
			if n := len(x.Switches); n > 0 && at > 0 && m.options.Cut.Of[at-1] == i {
				x.Switches[n-1].Last = s.DPID
			} else {
				x.Switches = append(x.Switches, flow.DPIDRange{First: s.DPID, Last: s.DPID})
			}
		}
		list = append(list, x)
	}
	if len(list) > 0 {
		list[0].Rest = true // each switch must be in one; new ones go here
	}
	return list
}

// scopes decides which services run per partition, and which work for all.
// Services that hold switches or send heartbeats run per partition, and so do
// those that the options name, and divisible ones that are too large for any
// server: every other division adds crossings to the way of packets. If that is
// impossible, each partition is a separate network.
func (m *model) scopes() error {
	m.per = map[string]bool{}
	if len(m.names) == 0 {
		return m.allowed()
	}
	for i := range m.specs {
		s := &m.specs[i]
		m.per[s.Name] = s.Pipeline || s.Scale == weft.PerPartition && s.Class == weft.RealTime || slices.Contains(m.options.PerPartition, s.Name)
	}
	for _, name := range m.options.PerPartition {
		if specOf(m.specs, name) == nil {
			return fmt.Errorf("per partition %q: there is no such service among those that are to run", name)
		}
	}
	err := m.allowed()
	if err == nil {
		for i := range m.specs {
			s := &m.specs[i]
			if m.per[s.Name] || s.Scale == weft.Single || !m.tooLarge(s) {
				continue
			}
			m.per[s.Name] = true
			if m.per[s.Name] = m.allowed() == nil; m.per[s.Name] {
				m.notes = append(m.notes, fmt.Sprintf("%s is too much for any server as a whole, so each partition has its own", s.Name))
			}
		}
		return m.allowed()
	}
	if len(m.options.PerPartition) > 0 {
		return fmt.Errorf("the services that each partition is to have for itself cannot be divided so: %w", err)
	}
	for i := range m.specs {
		m.per[m.specs[i].Name] = true
	}
	m.notes = append(m.notes, "each partition is a network by itself, with every service for itself: with these services no other way is allowed")
	if err := m.allowed(); err != nil {
		return fmt.Errorf("these services cannot run in partitions: %w", err)
	}
	return nil
}

// tooLarge reports whether a service for the whole network fits on no server.
func (m *model) tooLarge(s *weft.Spec) bool {
	d, n := m.profile.Of(s.Name), len(m.network.Switches)
	cpu, memory := m.profile.share(d, n, m.options.PacketIns, m.options.Changes)
	return !slices.ContainsFunc(m.servers, func(x Server) bool {
		left := 1 - m.options.Headroom
		return cpu <= x.CPU*left && float64(memory) <= float64(x.Memory)*left
	})
}

// allowed reports whether the rules of plans allow the scopes.
func (m *model) allowed() error {
	skeleton := &Plan{Name: m.options.Name, Transport: defaultTransport, Events: defaultEvents, Balance: defaultBalance, Bus: Bus{Replicas: 1}, Partitions: m.partitions()}
	for i, name := range append([]string{""}, m.names...) {
		if services := m.of(name); len(services) > 0 {
			w := Worker{Name: fmt.Sprintf("w%d", i), Services: services, Replicas: 1, Balance: defaultBalance, Partition: name, Listen: defaultListen}
			w.Settings = m.settings(&w, Server{}, i-1)
			skeleton.Workers = append(skeleton.Workers, w)
		}
	}
	err := skeleton.Check(m.specs)
	if m.partial = err != nil && len(m.options.Services) > 0; m.partial { // left out on purpose
		skeleton.Partial = true
		err = skeleton.Check(m.specs)
	}
	return err
}

// of returns the services that run in a partition, or those that work for all
// ("").
func (m *model) of(partition string) (names []string) {
	for _, s := range m.specs {
		if m.per[s.Name] == (partition != "") {
			names = append(names, s.Name)
		}
	}
	return names
}
