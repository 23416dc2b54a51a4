package node

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"time"
)

// lastResort is the cost for OSPF of a link whose BFD session has gone down. It is
// the highest there is: what has another way takes that, and what has none, as where
// the session is wrong, still goes here. No adjacency ends, so a false alarm loses
// nothing.
const lastResort = 65535

// protocol is a version of OSPF: the socket of its daemon, what it says of its
// interfaces, and the command that sets the cost of one.
type protocol struct{ socket, show, cost string }

const bfdUp = "up"

var (
	ospf  = protocol{"ospfd.vty", "show ip ospf interface json", "ip ospf cost"}
	ospf6 = protocol{"ospf6d.vty", "show ipv6 ospf6 interface json", "ipv6 ospf6 cost"}
)

// protocols returns the versions that a node's routing has.
func (k *keeping) protocols() []protocol {
	if k.Loopback6.IsValid() {
		return []protocol{ospf, ospf6}
	}
	return []protocol{ospf}
}

// keepCosts has the links whose BFD session has gone down be the last resort of the
// node's routing, until ctx ends.
func (k *keeping) keepCosts(ctx context.Context) {
	var done map[string]bool // as the routing has them; nil: not known
	was := map[string]bool{}
	before := map[protocol]map[string]int{} // costs before a link became the last resort
	for {
		reached := k.db.reached()
		now := k.silent(was)
		var again <-chan time.Time
		if reached && k.db.reached() && (done == nil || !maps.Equal(now, done)) {
			done = now
			for _, p := range k.protocols() {
				if before[p] == nil {
					before[p] = map[string]int{}
				}
				if err := k.setCosts(ctx, p, now, was, before[p]); err != nil { // it has not started, most likely
					done, again = nil, time.After(reportEvery)
				}
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-k.kick:
		case <-again:
		}
	}
}

// silent returns the routed interfaces of the ports to other nodes whose session
// was up, and is not. In was are the ports with a session that has been up.
func (k *keeping) silent(was map[string]bool) map[string]bool {
	silent := map[string]bool{}
	for n := range k.Ports {
		p := &k.Ports[n]
		i, there := k.db.iface(p.Interface)
		switch {
		case p.Customer || !there:
		case i.bfd["enable"] != "true":
			delete(was, p.Interface)
		case i.bfdStatus["state"] == bfdUp:
			was[p.Interface] = true
		case was[p.Interface]:
			silent[p.routed()] = true
		}
	}
	return silent
}

// setCosts has the silent interfaces, and no others, be the last resort. In before
// are the costs that they had. What an earlier process has made the last resort is
// silent, too, until its session is up.
func (k *keeping) setCosts(ctx context.Context, p protocol, silent, was map[string]bool, before map[string]int) error {
	socket := filepath.Join(k.Routing, p.socket)
	text, err := askFRR(ctx, socket, p.show)
	if err != nil {
		return err
	}
	type known struct{ Cost int }
	var said struct{ Interfaces map[string]known } // of OSPF
	if err := json.Unmarshal(text, &said); err != nil {
		return err
	}
	is := said.Interfaces
	if is == nil { // OSPFv3
		if err := json.Unmarshal(text, &is); err != nil {
			return err
		}
	}
	var commands []string
	set := func(iface, command string) { commands = append(commands, "interface "+iface, command, "exit") }
	for i := range k.Ports {
		port := &k.Ports[i]
		name := port.routed()
		now, there := is[name]
		if is, known := k.db.iface(port.Interface); there && known && !port.Customer && now.Cost == lastResort && is.bfd["enable"] == "true" && is.bfdStatus["state"] != bfdUp {
			was[port.Interface], silent[name] = true, true
		}
		switch {
		case !there || silent[name] == (now.Cost == lastResort):
		case silent[name]:
			before[name] = now.Cost
			set(name, fmt.Sprint(p.cost, " ", lastResort))
		case before[name] != 0:
			set(name, fmt.Sprint(p.cost, " ", before[name]))
		default: // of an earlier process
			set(name, "no "+p.cost)
		}
	}
	if len(commands) == 0 {
		return nil
	}
	_, err = askFRR(ctx, socket, append([]string{"configure terminal"}, commands...)...)
	if err == nil {
		k.log.Debug("the cost of links set", "commands", commands)
	}
	return err
}
