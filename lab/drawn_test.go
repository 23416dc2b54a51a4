package lab

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/topology"
)

// drawn is a lab file that is drawn at random, and redrawn in part.
type drawn struct {
	rng    *rand.Rand
	routed bool // it may have hybrid nodes and routers
	lab    part
	switches,
	hosts, links []part
}

// part is a mapping of a lab file: values as they are written, by their keys.
type part map[string]string

func (p part) String() string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(p)) {
		if p[key] != "" {
			all = append(all, key+": "+p[key])
		}
	}
	return "{" + strings.Join(all, ", ") + "}"
}

// steady is a part of every drawn file that is the same in all of them.
const steady = `switches:
  - {name: u0, kind: bridge, x-note: "is always there"}
%shosts:
  - {name: u1, switch: u0, ipv4: 172.16.0.1/24, ipv6: none, run: [sleep 1001]}
  - {name: u2, switch: u0, ipv4: 172.16.0.2/24, ipv6: none}
%slinks:
%s`

// String is the text of the file.
func (d *drawn) String() string {
	list := func(parts []part) (text string) {
		for _, p := range parts {
			text += "  - " + p.String() + "\n"
		}
		return text
	}
	text := fmt.Sprintf(steady, list(d.switches), list(d.hosts), list(d.links))
	for _, key := range slices.Sorted(maps.Keys(d.lab)) {
		text += key + ": " + d.lab[key] + "\n"
	}
	return text
}

func (d *drawn) clone() *drawn {
	c := *d
	c.lab = maps.Clone(d.lab)
	for _, list := range []*[]part{&c.switches, &c.hosts, &c.links} {
		*list = slices.Clone(*list)
		for i := range *list {
			(*list)[i] = maps.Clone((*list)[i])
		}
	}
	return &c
}

// chance is true in one of n cases.
func (d *drawn) chance(n int) bool { return d.rng.IntN(n) == 0 }

func (d *drawn) one(of ...string) string { return of[d.rng.IntN(len(of))] }

// some is a value in one of n cases, else nothing.
func (d *drawn) some(n int, of ...string) string {
	if !d.chance(n) {
		return ""
	}
	return d.one(of...)
}

// names are those that nodes are drawn from: a host may be what was a switch. One
// is too long for an interface.
func (d *drawn) name() string {
	return d.one("a", "b", "c", "d", "e", "f", "g", "vi3", "a-node-with-a-long-name")
}

func (d *drawn) of(parts []part) string {
	if len(parts) == 0 {
		return "u0"
	}
	return parts[d.rng.IntN(len(parts))]["name"]
}

func (d *drawn) drawSwitch(p part) {
	p["kind"] = d.some(3, "bridge")
	if d.routed {
		p["kind"] = d.one("hybrid", "hybrid", "router", "bridge")
	}
	for _, key := range []string{"dpid", "protocols", "fail_mode", "loopback"} {
		delete(p, key)
	}
	if p["kind"] == "" || p["kind"] == "hybrid" {
		p["dpid"] = d.some(3, "0x11", "0x12", "0x13", "0x14")
		p["protocols"] = d.some(4, "[OpenFlow13]", "[OpenFlow10, OpenFlow13]")
	}
	switch p["kind"] {
	case "":
		p["fail_mode"] = d.one("standalone", "standalone", "secure")
	case "hybrid", "router":
		p["loopback"] = d.some(4, "10.255.9.1", "10.255.9.2", "10.255.9.3")
	}
}

func (d *drawn) drawShape(p part, delay int) {
	p["rate"] = d.some(4, "10mbit", "100mbit", "1gbit")
	p["loss"] = d.some(5, "1%", "20%", "0%")
	p["delay"], p["jitter"] = d.some(delay, "1ms", "3ms"), d.some(2*delay, "1ms")
	p["mtu"] = d.some(6, "1400", "1600")
}

func (d *drawn) drawHost(p part) {
	clear := []string{"gateway", "vlan", "eth1", "run", "cpus", "manage"}
	for _, key := range clear {
		delete(p, key)
	}
	p["switch"] = d.of(d.switches)
	p["port"] = d.some(5, "7", "8", "9")
	p["mac"] = d.some(5, `"02:00:00:00:77:01"`, `"02:00:00:00:77:02"`)
	p["ipv4"] = d.some(3, "10.0.0.101/24", "10.0.0.102/24", "10.0.0.103/24", "none")
	p["ipv6"] = d.some(4, "fd00::101/64", "fd00::102/64", "none")
	p["gateway4"] = d.some(6, "10.0.0.254", "10.0.0.253")
	p["run"] = d.some(3, "[sleep 1002]", "[sleep 1003, {name: two, command: sleep 1004, env: {A: b}}]", "[{command: sleep 1005, restart: never}]")
	p["cpus"] = d.some(6, "[0]")
	p["manage"] = d.some(5, "true")
	if d.routed {
		p["gateway"] = d.some(2, "true")
		p["ipv4"], p["ipv6"], p["gateway4"] = "", d.some(6, "none"), ""
	} else {
		p["vlan"] = d.some(5, "7", "8")
		if d.chance(5) {
			p["eth1"] = part{"switch": d.some(2, d.of(d.switches)), "port": d.some(3, "11", "12")}.String()
		}
	}
	d.drawShape(p, 6)
}

func (d *drawn) drawLink(p part) {
	p["a"], p["b"] = d.of(d.switches), d.of(d.switches)
	p["a_port"], p["b_port"] = d.some(5, "21", "22"), d.some(5, "21", "23")
	d.drawShape(p, 4)
}

func (d *drawn) drawLab() {
	d.lab = part{"controller": d.one("none", "none", "tcp:127.0.0.1:9", `["tcp:127.0.0.1:9", "unix:/run/nobody"]`)}
	if d.chance(4) {
		d.lab["names"] = d.one("[{name: there, addresses: [192.0.2.7]}]", `[{name: there, addresses: ["2001:db8::7"]}]`)
	}
	if !d.routed {
		return
	}
	if d.chance(3) {
		d.lab["ovs"] = "own"
	}
	if d.chance(2) {
		d.lab["routing"] = d.one("{bfd: 1s}", "{dead: 5s, hello: 2s}", "{ipv4_only: true}")
	}
	if d.chance(3) {
		d.lab["control"] = "{mode: in-band, at: " + d.of(d.switches) + "}"
	}
}

// drawFile draws a file that can be brought up.
func drawFile(rng *rand.Rand, routed bool) *drawn {
	for {
		d := &drawn{rng: rng, routed: routed}
		for range 2 + rng.IntN(3) {
			p := part{"name": d.name()}
			d.drawSwitch(p)
			d.switches = append(d.switches, p)
		}
		for range rng.IntN(4) {
			p := part{"name": d.name()}
			d.drawHost(p)
			d.hosts = append(d.hosts, p)
		}
		for range rng.IntN(4) {
			p := part{}
			d.drawLink(p)
			d.links = append(d.links, p)
		}
		d.drawLab()
		if d.possible(nil) {
			return d
		}
	}
}

// redraw returns a file with parts of it drawn anew that the lab can become.
func (d *drawn) redraw(running *layout.Lab) *drawn {
	for {
		c := d.clone()
		lists := []struct {
			list *[]part
			draw func(part)
		}{{&c.switches, c.drawSwitch}, {&c.hosts, c.drawHost}, {&c.links, c.drawLink}}
		for _, l := range lists {
			*l.list = slices.DeleteFunc(*l.list, func(part) bool { return c.chance(6) })
			for i := range *l.list {
				if c.chance(3) {
					was := maps.Clone((*l.list)[i])
					l.draw((*l.list)[i])
					for key, value := range was { // most of it stays
						if !c.chance(3) && key != "kind" && was["kind"] == (*l.list)[i]["kind"] {
							(*l.list)[i][key] = value
						}
					}
				}
			}
			if c.chance(2) {
				p := part{"name": c.name()}
				if l.list == &c.links {
					p = part{}
				}
				l.draw(p)
				*l.list = append(*l.list, p)
			}
			if c.chance(4) {
				c.rng.Shuffle(len(*l.list), func(i, j int) { (*l.list)[i], (*l.list)[j] = (*l.list)[j], (*l.list)[i] })
			}
			if len(*l.list) > 1 && l.list != &c.links && c.chance(6) { // swapped names
				(*l.list)[0]["name"], (*l.list)[1]["name"] = (*l.list)[1]["name"], (*l.list)[0]["name"]
			}
		}
		if c.chance(3) {
			c.drawLab()
		}
		if c.possible(running) {
			return c
		}
	}
}

// possible reports whether a file can be brought up or applied, and no frame goes
// round in it for ever.
func (d *drawn) possible(running *layout.Lab) bool {
	t, err := topology.ParseChanged("drawn.yaml", []byte(d.String()), runningOf(running))
	if err != nil {
		return false
	}
	flat := t.Clone()
	flat.Links = slices.DeleteFunc(flat.Links, func(l topology.Link) bool {
		a, _ := t.SwitchByName(l.A)
		b, _ := t.SwitchByName(l.B)
		return a.Routes() || b.Routes()
	})
	return flat.Loops() == 0
}

// TestDrawn: whatever leads from a drawn file to another, the second is then what it says,
// and can be written and read again.
func TestDrawn(t *testing.T) {
	for seed := range uint64(20) {
		d := drawFile(rand.New(rand.NewPCG(seed, 0)), seed%2 == 0)
		s := layout.Lay(parsed(t, d.String(), nil))
		for range 5 {
			d = d.redraw(s)
			s = layout.LayAgain(parsed(t, d.String(), s), s)
			if again := topology.Compare(s.Topology, parsed(t, d.String(), s)); !again.None() {
				t.Fatalf("seed %d: the same file differs: %+v\n%s", seed, again, d)
			}
			text, err := s.Topology.YAML()
			if err != nil {
				t.Fatal(err)
			}
			if again := topology.Compare(s.Topology, parsed(t, string(text), nil)); !again.None() {
				t.Fatalf("seed %d: written and read: %+v\n%s", seed, again, text)
			}
		}
	}
}
