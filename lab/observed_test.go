package lab

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/nodes"
)

// observed is what there is of a lab on the machine, asked of the kernel, Open
// vSwitch, FRR and the processes themselves: equal for labs that are alike,
// whatever their names, and those of their bridges and interfaces.
type observed map[string]string

// differences lists what one has other than another.
func (o observed) differences(other observed) (all []string) {
	keys := maps.Clone(o)
	maps.Copy(keys, other)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if is, not := strings.Split(o[key], "\n"), strings.Split(other[key], "\n"); o[key] != other[key] {
			lacks := func(list []string) func(string) bool {
				return func(line string) bool { return slices.Contains(list, line) }
			}
			all = append(all, fmt.Sprintf("%s: %q, and not %q", key, slices.DeleteFunc(slices.Clone(is), lacks(not)), slices.DeleteFunc(slices.Clone(not), lacks(is))))
		}
	}
	return all
}

// observer observes a lab.
type observer struct {
	t     *testing.T
	s     *layout.Lab
	is    observed
	names *strings.Replacer // what is called otherwise in every lab
	known map[string]string // namespace/interface -> what it is
}

func observe(t *testing.T, name string) observed {
	t.Helper()
	s, err := layout.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	o := &observer{t: t, s: s, is: observed{}, known: map[string]string{}}
	o.call()
	spaces := machine.LabNetns(name)
	o.is["namespaces"] = o.names.Replace(strings.Join(slices.Sorted(slices.Values(spaces)), " "))
	for _, ns := range spaces {
		o.space(ns)
	}
	for _, v := range nodes.SwitchesOf(s).AllOVS() {
		o.openVSwitch(v)
	}
	o.processes()
	o.files()
	return o.is
}

func (o *observer) fatal(err error) {
	o.t.Helper()
	if err != nil {
		o.t.Fatal(err)
	}
}

// call finds out what is called how.
func (o *observer) call() {
	var words []string
	for i := range o.s.Wires {
		for _, e := range o.s.Wires[i].Ends() {
			o.known[e.Netns+"/"+e.Iface] = e.String()
			if !e.Host {
				words = append(words, `"`+e.Iface+`"`, `"`+e.String()+`"`)
			}
		}
	}
	for i := range o.s.Nodes {
		n := &o.s.Nodes[i]
		words = append(words, "frr/"+n.Short, "frr/"+n.Name, `"`+n.Short+`"`, `"`+n.Name+`"`, n.Short+".mgmt", n.Name+".mgmt",
			nodes.SharedAt(n.Number, 0), "port of "+n.Name, nodes.SharedAt(n.Number, 1), "second port of "+n.Name)
		for _, p := range n.Routed() {
			if p.Role != layout.RoleGateway { // numbers are kept
				words = append(words, p.IPv4.String(), fmt.Sprintf("address of %s:%d", n.Name, p.Port), p.IPv6.String(), fmt.Sprintf("IPv6 address of %s:%d", n.Name, p.Port))
			}
			if p.InternalInterface != "" {
				inner := fmt.Sprintf("%s internal %d", n.Name, p.Port)
				o.known[nodes.SwitchesOf(o.s).OVSOf(n.Name).Netns+"/"+p.InternalInterface] = inner
				words = append(words, `"`+p.InternalInterface+`"`, `"`+inner+`"`)
			}
		}
	}
	for sw, bridge := range o.s.Bridges {
		o.known[nodes.SwitchesOf(o.s).OVSOf(sw).Netns+"/"+bridge] = "bridge " + sw
		words = append(words, "/"+bridge+"/", "/"+sw+"/")
	}
	words = slices.Insert(words, 0, "invalid Prefix", "none")
	o.names = strings.NewReplacer(append([]string{machine.SwitchNetns(o.s.Name), "LAB", machine.Dir(o.s.Name), "LAB"}, words...)...)
}

// space observes a network namespace: interfaces with addresses, routes, rates and loss.
func (o *observer) space(ns string) {
	at := o.names.Replace(ns)
	called := func(iface string) string {
		if name := o.known[ns+"/"+iface]; name != "" {
			return name
		}
		return iface
	}
	o.fatal(machine.WithLinks(ns, func(h *netlink.Handle) error {
		links, err := machine.ListWhole(h.LinkList)
		if err != nil {
			return err
		}
		byIndex := map[int]string{}
		for _, l := range links {
			a := l.Attrs()
			byIndex[a.Index] = called(a.Name)
			text := fmt.Sprintf("mtu %d", a.MTU)
			if strings.HasPrefix(called(a.Name), "bridge ") { // Open vSwitch's own choice
				text = ""
			}
			if a.Flags&unix.IFF_UP != 0 {
				text += " up"
			}
			if a.Name == layout.HostIface {
				text += " " + a.HardwareAddr.String()
			}
			addresses, err := machine.ListWhole(func() ([]netlink.Addr, error) { return h.AddrList(l, netlink.FAMILY_ALL) })
			if err != nil {
				return err
			}
			var list []string
			for _, a := range addresses {
				if l.Attrs().Name == nodes.ManageIface {
					list = append(list, "an address of its own")
				} else if !a.IP.IsLinkLocalUnicast() {
					list = append(list, a.IPNet.String())
				}
			}
			slices.Sort(list)
			qdiscs, err := machine.ListWhole(func() ([]netlink.Qdisc, error) { return h.QdiscList(l) })
			if err != nil {
				return err
			}
			for _, q := range qdiscs {
				if tbf, ok := q.(*netlink.Tbf); ok {
					list = append(list, fmt.Sprintf("rate %d limit %d buffer %d", tbf.Rate, tbf.Limit, tbf.Buffer))
				}
			}
			if a.Name != "lo" || at != "LAB" { // where it may be left up
				o.is[at+" interface "+called(a.Name)] = text + " " + o.names.Replace(strings.Join(list, " "))
			}
		}
		routes, err := machine.ListWhole(func() ([]netlink.Route, error) { return h.RouteList(nil, netlink.FAMILY_ALL) })
		if err != nil {
			return err
		}
		var list []string
		for _, r := range routes {
			if r.Protocol == unix.RTPROT_BOOT && r.Gw != nil { // else the kernel's own, and those of FRR, which come and go
				list = append(list, fmt.Sprintf("%v by %v at %s", r.Dst, r.Gw, byIndex[r.LinkIndex]))
			}
		}
		slices.Sort(list)
		o.is[at+" routes"] = strings.Join(list, ", ")
		return nil
	}))
	o.fatal(machine.InNetns(ns, func() error {
		out, err := exec.Command("nft", "list", "ruleset").Output()
		if err != nil {
			return fmt.Errorf("nft in %s: %w", ns, err)
		}
		var rules []string
		for chain := range strings.SplitSeq(string(out), "chain ") {
			if _, hook, ok := strings.Cut(chain, "device \""); ok {
				iface, rest, _ := strings.Cut(hook, "\"")
				rules = append(rules, called(iface)+strings.Join(strings.Fields(strings.ReplaceAll(rest[:strings.Index(rest, "}")], ";", "")), " "))
			}
		}
		slices.Sort(rules)
		o.is[at+" loss"] = strings.Join(rules, "; ")
		out, err = exec.Command("ss", "-Hltn").Output()
		list := listeners(o.names.Replace(string(out)))
		slices.Sort(list)
		o.is[at+" listens"] = strings.Join(list, " ")
		return err
	}))
}

func listeners(ss string) (all []string) {
	for line := range strings.Lines(ss) {
		if f := strings.SplitN(line, "0.0.0.0:*", 2); len(f) > 1 {
			all = append(all, strings.Join(strings.Fields(f[0])[3:], " "))
		}
	}
	return all
}

// openVSwitch observes the bridges of an instance.
func (o *observer) openVSwitch(v nodes.OVS) {
	by := func(columns, table string) map[string][]any {
		rows, err := v.Table(o.t.Context(), "_uuid,"+columns, table)
		o.fatal(err)
		all := map[string][]any{}
		for _, row := range rows {
			all[nodes.UUIDs(row[0])[0]] = row[1:]
		}
		return all
	}
	ports, ifaces, controllers := by("name,interfaces", "Port"), by("name,ofport", "Interface"), by("target,max_backoff,inactivity_probe,connection_mode", "Controller")
	at := o.names.Replace(v.Netns)
	for _, row := range by("name,fail_mode,protocols,datapath_type,other_config,controller,ports", "Bridge") {
		bridge := fmt.Sprint(row[0])
		name := o.known[v.Netns+"/"+bridge]
		if name == "" {
			name = bridge
		}
		var has []string
		for _, id := range nodes.UUIDs(row[5]) {
			has = append(has, fmt.Sprint(controllers[id]))
		}
		for _, id := range nodes.UUIDs(row[6]) {
			if fmt.Sprint(ports[id][0]) == bridge {
				continue
			}
			iface := ifaces[nodes.UUIDs(ports[id][1])[0]]
			called := o.known[v.Netns+"/"+fmt.Sprint(iface[0])]
			if called == "" {
				called = fmt.Sprint(iface[0])
			}
			has = append(has, fmt.Sprintf("%s at %v", called, iface[1]))
		}
		slices.Sort(has)
		o.is[at+" "+name] = o.names.Replace(fmt.Sprint(row[1:5], has))
	}
	rows, err := v.Table(o.t.Context(), "other_config", "Open_vSwitch")
	o.fatal(err)
	o.is[at+" Open vSwitch"] = fmt.Sprint(rows)
}

// processes observes what runs in the namespaces, and the programs of hosts.
func (o *observer) processes() {
	in := map[machine.Inode]string{}
	for _, ns := range machine.LabNetns(o.s.Name) {
		id, _ := machine.InodeOf(machine.NetnsPath(ns))
		in[id] = ns
	}
	pids, err := machine.AllProcesses()
	o.fatal(err)
	all := map[string][]string{}
	for _, pid := range pids {
		id, _ := machine.InodeOf(fmt.Sprintf("/proc/%d/ns/net", pid))
		comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if ns := in[id]; ns != "" {
			all[ns] = append(all[ns], strings.TrimSpace(string(comm)))
		}
	}
	for ns, names := range all {
		slices.Sort(names)
		o.is[o.names.Replace(ns)+" processes"] = strings.Join(names, " ")
	}
	for _, p := range handleOf(o.s).Programs(o.t.Context()) {
		text := fmt.Sprint(p.Command, " ", p.Restart, " ", p.State)
		if p.PID > 0 {
			var cpus unix.CPUSet
			o.fatal(unix.SchedGetaffinity(p.PID, &cpus))
			env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.PID))
			o.fatal(err)
			hosts, err := os.ReadFile(fmt.Sprintf("/proc/%d/root/etc/hosts", p.PID))
			o.fatal(err)
			var own []string
			for v := range strings.SplitSeq(string(env), "\x00") {
				if strings.HasPrefix(v, "WEFT_") && !strings.HasPrefix(v, "WEFT_LAB=") && !strings.Contains(v, "ADDRESS") || strings.HasPrefix(v, "A=") {
					own = append(own, v)
				}
			}
			slices.Sort(own)
			text += fmt.Sprint(" ", cpus.Count(), own, string(hosts))
		}
		o.is["program "+p.Host+"/"+p.Name] = o.names.Replace(text)
	}
}

// files observes what the lab's directory has for others, and the routing.
func (o *observer) files() {
	read := func(path string) {
		text, err := os.ReadFile(filepath.Join(o.s.Dir(), path))
		o.fatal(err)
		o.is["file "+o.names.Replace(path)] = o.names.Replace(string(text))
	}
	read("hosts")
	if len(o.s.Nodes) > 0 && o.s.HasHybrid() {
		read("nodes.json")
	}
	for i := range o.s.Nodes {
		n := &o.s.Nodes[i]
		for _, d := range nodes.RoutingOf(o.s).FRRDaemons() {
			read(filepath.Join("frr", n.Short, d+".conf"))
		}
		out, err := exec.Command("vtysh", "--vty_socket", nodes.RoutingOf(o.s).RoutingDir(n), "-c", "show running-config").Output()
		o.fatal(err)
		lines := strings.Split(string(out), "\n")
		slices.Sort(lines)
		o.is["routing of "+n.Name] = strings.Join(slices.Compact(lines), "\n")
	}
	for _, dir := range []string{".", "frr", "logs"} {
		entries, _ := os.ReadDir(filepath.Join(o.s.Dir(), dir))
		var names []string
		for _, e := range entries {
			name := e.Name()
			if _, host := o.s.Topology.HostByName(name); dir == "logs" && host || name == "frr" { // of programs that were there, too, or empty
				continue
			}
			if e.IsDir() {
				for sw, bridge := range o.s.Bridges {
					if bridge == name {
						name = sw
					}
				}
				names = append(names, name+"/")
			} else if strings.HasPrefix(name, "ctl") && machine.CheckSocket(filepath.Join(o.s.Dir(), name)) == nil {
				names = append(names, name+" "+strconv.FormatBool(e.Type() == os.ModeSocket))
			}
		}
		slices.Sort(names)
		o.is["directory "+dir] = strings.Join(names, " ")
	}
	for name, m := range o.s.Manage {
		l, err := netlink.LinkByName(m.Interface)
		o.is["manage "+name] = fmt.Sprint(err, l != nil && l.Attrs().Flags&unix.IFF_UP != 0)
	}
}
