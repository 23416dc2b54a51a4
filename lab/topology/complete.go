package topology

import (
	"fmt"
	"net/netip"
	"path/filepath"
)

// Complete fills in what was left open, the same way every time: the
// controller; OpenFlow 1.0 and 1.3 and fail mode secure for switches; datapath
// ids 1, 2, …; ports from 1, those of hosts first; and for the Nth host
// 02:00:00:00:NN:NN, 10.0.0.N/24 (10.0.0.0/16 if there are more than 254
// hosts) and fd00::N/64; programs get the names of their files, and are always
// restarted. What is set already is kept and never given twice. A
// topology with more hosts than addresses stays as it is; Check says so.
//
// The Nth hybrid node or router gets the loopbacks 10.255.0.N and fd00:ff::N,
// the Nth host with a gateway 10.64.N.2/24 and fd00:64:0:N::2/64, and OSPF says
// hello every second and gives a neighbour up after four.
func (t *Topology) Complete() {
	if len(t.Hosts) > mostNodes || len(t.Switches) > mostNodes {
		return
	}
	if len(t.Controllers) == 0 {
		t.Controllers = []string{DefaultController}
	}
	t.completeSwitches()
	t.completeNodes()
	t.completeGateways()
	t.completeHosts()
	t.completePorts()
}

func (t *Topology) completeSwitches() {
	used := map[DPID]bool{0: true}
	for _, s := range t.Switches {
		used[s.DPID] = true
	}
	free := newUnused(func(n int) bool { return used[DPID(n)] })
	for i := range t.Switches {
		s := &t.Switches[i]
		if s.Kind == "" {
			s.Kind = KindOpenFlow
		}
		if !s.Controlled() {
			continue
		}
		if s.DPID == 0 {
			s.DPID = DPID(free.from(i + 1))
			used[s.DPID] = true
		}
		if len(s.Protocols) == 0 {
			s.Protocols = []string{"OpenFlow10", "OpenFlow13"}
		}
		if s.FailMode == "" {
			s.FailMode = FailSecure
		}
	}
}

func (t *Topology) completeHosts() {
	macs := map[MAC]bool{}
	addrs := map[netip.Addr]bool{}
	for _, h := range t.Hosts {
		macs[h.MAC] = true
		addrs[h.IPv4.Addr()] = true
		addrs[h.IPv6.Addr()] = true
	}
	wide := len(t.Hosts) > 254
	freeMAC := newUnused(func(n int) bool { return macs[hostMAC(n)] })
	free4 := newUnused(func(n int) bool { return addrs[hostIPv4(n, wide).Addr()] })
	free6 := newUnused(func(n int) bool { return addrs[hostIPv6(n).Addr()] })
	for i := range t.Hosts {
		h := &t.Hosts[i]
		h.completePrograms()
		if h.Eth1 != nil && h.Eth1.Switch == "" {
			h.Eth1.Switch = h.Switch
		}
		if (h.MAC == MAC{}) {
			h.MAC = hostMAC(freeMAC.from(i + 1))
			macs[h.MAC] = true
		}
		if !h.IPv4.IsValid() {
			h.IPv4 = hostIPv4(free4.from(i+1), wide)
			addrs[h.IPv4.Addr()] = true
		}
		if !h.IPv6.IsValid() {
			h.IPv6 = hostIPv6(free6.from(i + 1))
			addrs[h.IPv6.Addr()] = true
		}
	}
}

func hostMAC(n int) MAC { return MAC{2, 0, 0, byte(n >> 16), byte(n >> 8), byte(n)} }

func hostIPv4(n int, wide bool) netip.Prefix {
	bits := 24
	if wide || n > 254 {
		bits = 16
	}
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)}), bits)
}

func hostIPv6(n int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom16([16]byte{0: 0xfd, 14: byte(n >> 8), 15: byte(n)}), 64)
}

func (t *Topology) completePorts() {
	used := map[string]map[uint16]bool{}
	next := map[string]uint16{}
	mark := func(sw string, port uint16) {
		if used[sw] == nil {
			used[sw] = map[uint16]bool{0: true}
		}
		used[sw][port] = true
	}
	give := func(sw string, port *uint16) {
		if *port != 0 {
			return
		}
		if mark(sw, 0); len(used[sw]) > maxPort { // Check says so
			return
		}
		for used[sw][next[sw]] {
			next[sw]++
		}
		*port = next[sw]
		mark(sw, *port)
	}
	for _, h := range t.Hosts {
		mark(h.Switch, h.Port)
		if h.Eth1 != nil {
			mark(h.Eth1.Switch, h.Eth1.Port)
		}
	}
	for _, l := range t.Links {
		mark(l.A, l.APort)
		mark(l.B, l.BPort)
	}
	for i := range t.Hosts {
		give(t.Hosts[i].Switch, &t.Hosts[i].Port)
		if eth1 := t.Hosts[i].Eth1; eth1 != nil {
			give(eth1.Switch, &eth1.Port)
		}
	}
	for i := range t.Links {
		give(t.Links[i].A, &t.Links[i].APort)
		if t.Links[i].Tunnel == nil {
			give(t.Links[i].B, &t.Links[i].BPort)
		}
	}
}

// completePrograms names the programs of a host that have no name.
func (h *Host) completePrograms() {
	used, next := map[string]bool{}, map[string]int{}
	for _, p := range h.Run {
		used[p.Name] = true
	}
	for i := range h.Run {
		p := &h.Run[i]
		if p.Restart == "" {
			p.Restart = RestartAlways
		}
		argv, err := SplitWords(p.Command)
		if p.Name != "" || err != nil {
			continue
		}
		base := LabName(filepath.Base(argv[0]))
		p.Name = base
		for n := max(2, next[base]); used[p.Name]; n++ {
			p.Name = fmt.Sprintf("%s-%d", base, n)
			next[base] = n + 1
		}
		used[p.Name] = true
	}
}
