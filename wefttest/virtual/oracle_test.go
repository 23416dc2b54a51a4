package virtual

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/openflow/oftest"
)

var errAbsent = errors.New("the witness does not run")

// until waits until a look at the world finds nothing wrong, for so long at most, and
// returns what it found last.
func until(ctx context.Context, within time.Duration, look func(context.Context) error) error {
	began := time.Now()
	for {
		err := look(ctx)
		if err == nil {
			return nil
		}
		if time.Since(began) > within {
			return fmt.Errorf("not so after %v: %w", within, err)
		}
		if !rest(ctx, 500*time.Millisecond) {
			return err
		}
	}
}

// look compares what hosts, switches and the controller say with what is.
func (w *world) look(ctx context.Context) error {
	deaf := errors.Join(w.unreached(ctx), w.masters())
	witness := w.cluster.present()
	if witness == nil {
		return errors.Join(deaf, errAbsent)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := errors.Join(deaf, w.cables(ctx, witness), w.hosts(ctx, witness), w.switches(ctx, witness), w.entries(ctx, witness)); err != nil {
		return err
	}
	return w.counted() // which is dear
}

// unreached says which hosts do not reach which, of those that must.
func (w *world) unreached(ctx context.Context) error {
	of := w.islands()
	var mu sync.Mutex
	var bad []string
	var all sync.WaitGroup
	for _, a := range w.stations {
		for _, b := range w.stations {
			if a == b || of[a.Location().Switch] != of[b.Location().Switch] || w.apart(a, b) {
				continue
			}
			all.Go(func() {
				if !a.ping(ctx, b, w.number(), 2*time.Second) {
					mu.Lock()
					defer mu.Unlock()
					bad = append(bad, a.name+">"+b.name)
				}
			})
		}
	}
	all.Wait()
	if len(bad) == 0 {
		return nil
	}
	slices.Sort(bad)
	return fmt.Errorf("no answer: %s", strings.Join(bad, " "))
}

// masters says which switch has not one master.
func (w *world) masters() error {
	for _, d := range w.devices {
		var roles []openflow.Role
		d.Do(func(s *oftest.Switch) oftest.Effects {
			roles = s.Roles()
			return oftest.Effects{}
		})
		n := 0
		for _, r := range roles {
			if r == openflow.RoleMaster {
				n++
			}
		}
		if n != 1 {
			return fmt.Errorf("switch %v has %d masters among %v", d.sw, n, roles)
		}
	}
	return nil
}

// cables compares the links that discovery lists, and those that the witness was
// told of, with those that there are.
func (w *world) cables(ctx context.Context, by *witness) error {
	resp, err := weft.Call(ctx, by.env, api.ListLinks, &api.ListLinksRequest{})
	if err != nil {
		return fmt.Errorf("list links: %w", err)
	}
	var listed, told []string
	for _, l := range resp.Links {
		if l.State != "down" {
			listed = append(listed, linkText(l))
		}
	}
	by.facts.mu.Lock()
	for _, e := range by.facts.links {
		told = append(told, linkText(e.Link))
	}
	by.facts.mu.Unlock()
	slices.Sort(listed)
	slices.Sort(told)
	want := w.trueLinks()
	return join(differ("links listed", listed, want), differ("links told", told, want))
}

func linkText(l *api.Link) string { return place(l.Src) + ">" + place(l.Dst) }

func place(l *api.Location) string {
	sw, _ := flow.ParseDPID(l.GetDpid())
	return flow.Location{Switch: sw, Port: flow.Port(l.GetPort())}.String()
}

// hosts does so with the hosts.
func (w *world) hosts(ctx context.Context, by *witness) error {
	resp, err := weft.Call(ctx, by.env, api.ListHosts, &api.ListHostsRequest{})
	if err != nil {
		return fmt.Errorf("list hosts: %w", err)
	}
	var listed, told []string
	for _, h := range resp.Hosts {
		if w.unsure(h) {
			continue
		}
		listed = append(listed, h.Mac+" at "+place(h.At))
	}
	by.facts.mu.Lock()
	for _, e := range by.facts.hosts {
		if w.unsure(e.Host) {
			continue
		}
		told = append(told, e.Host.Mac+" at "+place(e.Host.At))
	}
	by.facts.mu.Unlock()
	slices.Sort(listed)
	slices.Sort(told)
	want := w.trueHosts()
	return join(differ("hosts listed", listed, want), differ("hosts told", told, want))
}

// switches does so with the switches.
func (w *world) switches(ctx context.Context, by *witness) error {
	resp, err := weft.Call(ctx, by.env, api.ListSwitches, &api.ListSwitchesRequest{})
	if err != nil {
		return fmt.Errorf("list switches: %w", err)
	}
	var listed, told, want []string
	for _, s := range resp.Switches {
		if s.Connected {
			listed = append(listed, s.Dpid)
		}
	}
	by.facts.mu.Lock()
	for _, e := range by.facts.switches {
		if e.Switch.Connected {
			told = append(told, e.Switch.Dpid)
		}
	}
	by.facts.mu.Unlock()
	for _, d := range w.devices {
		want = append(want, d.sw.String())
	}
	slices.Sort(listed)
	slices.Sort(told)
	slices.Sort(want)
	return join(differ("switches listed", listed, want), differ("switches told", told, want))
}

func join(texts ...string) error {
	texts = slices.DeleteFunc(texts, func(s string) bool { return s == "" })
	if len(texts) == 0 {
		return nil
	}
	return errors.New(strings.Join(texts, "; "))
}

// counted says whose packet-ins are not all settled or counted as lost.
func (w *world) counted() error {
	for _, p := range w.cluster.all() {
		figures, err := p.figures()
		if err != nil {
			return err
		}
		read, settled, lost := figures["weft_southbound_packet_ins_read_total"], figures["weft_southbound_packet_ins_settled_total"], figures["weft_southbound_packet_ins_lost_total"]
		if read != settled+lost {
			return fmt.Errorf("process %s has read %v packet-ins; settled %v, lost %v", p.name, read, settled, lost)
		}
	}
	return nil
}

// figures returns the metrics of a process, added up over their labels.
func (p *process) figures() (map[string]float64, error) {
	families, err := p.registry.Gather()
	figures := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			figures[f.GetName()] += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return figures, err
}
