package lab

import (
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/lab/topology"
	"github.com/weft-sdn/weft/lab/traffic"
)

func TestLabsSideBySide(t *testing.T) {
	for _, name := range []string{"one", "two", "three"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := upForTest(t, standalone(linear(t, 3, 1)), Options{})
			for _, v6 := range []bool{false, true} {
				results, err := l.PingAll(t.Context(), l.AllPairs(v6), traffic.PingOptions{IPv6: v6, Interval: 10 * time.Millisecond, Timeout: neighbourPatience})
				if err != nil {
					t.Fatal(err)
				}
				if len(results) != 6 || traffic.AnyLost(results) {
					t.Errorf("%+v", results)
				}
			}
			if out, err := l.Exec(t.Context(), "h2", "cat", "/proc/net/dev"); err != nil || !strings.Contains(out, "eth0") {
				t.Errorf("%s, %v", out, err)
			}
			if _, err := l.Exec(t.Context(), "h2", "false"); err == nil {
				t.Error("a failing command is no error")
			}
			found := false
			labs, err := List(t.Context())
			for _, s := range labs {
				found = found || s.Name == l.Name() && s.State == "up" && s.Switches == 3 && s.Hosts == 3 && s.Links == 2
			}
			if err != nil || !found {
				t.Errorf("List: %+v, %v", labs, err)
			}
		})
	}
}

func TestUpRefusesANameInUse(t *testing.T) {
	t.Parallel()
	l := upForTest(t, standalone(linear(t, 1, 2)), Options{})
	_, err := Up(t.Context(), linear(t, 1, 1), Options{Name: l.Name(), KeeperCommand: keeperOfTest(t)})
	if err == nil || !strings.Contains(err.Error(), "is up already") {
		t.Fatalf("got %v", err)
	}
	wantPing(t, l, "h1", "h2", traffic.PingOptions{}, 3, 3)
}

func TestSwitchesAreWhatTheTopologySays(t *testing.T) {
	t.Parallel()
	topo := &topology.Topology{
		Controllers: []string{topology.ControllerNone},
		Switches:    []topology.Switch{{Name: "a-switch-with-a-long-name", DPID: 0xabcdef, Protocols: []string{"OpenFlow13"}}, {Name: "s2"}},
		Hosts:       []topology.Host{{Name: "h1", Switch: "s2", Port: 77}},
		Links:       []topology.Link{{A: "a-switch-with-a-long-name", B: "s2", APort: 5}},
		Name:        "x",
	}
	l := upForTest(t, topo, Options{})
	show, err := l.OfCtl(t.Context(), "a-switch-with-a-long-name", "show")
	if err != nil || !strings.Contains(show, "dpid:0000000000abcdef") || !strings.Contains(show, "OF1.3") {
		t.Errorf("%s, %v", show, err)
	}
	ports, err := l.OfCtl(t.Context(), "s2", "dump-ports-desc")
	if err != nil || !strings.Contains(ports, " 77(s2-eth77): addr:06:") {
		t.Errorf("%s, %v", ports, err)
	}
	if d, err := l.SwitchDPID("s2"); d != 2 || err != nil {
		t.Errorf("dpid of s2: %v, %v", d, err)
	}
	if flows, err := l.OfctlDumpFlows(t.Context(), "s2"); err != nil || len(flows) != 0 {
		t.Errorf("a secure switch begins with flows %q, %v", flows, err)
	}
	normal(t, l)
	if flows, err := l.OfctlDumpFlows(t.Context(), "s2"); err != nil || len(flows) != 1 || !strings.Contains(flows[0], "actions=NORMAL") {
		t.Errorf("flows %q, %v", flows, err)
	}
	if out, err := l.AppCtl(t.Context(), "fdb/show", "s2"); err != nil || !strings.Contains(out, "VLAN") {
		t.Errorf("%s, %v", out, err)
	}
}

func TestLinkStates(t *testing.T) {
	t.Parallel()
	topo := linear(t, 2, 1)
	topo.Controllers = []string{topology.ControllerNone}
	topo.Links = append(topo.Links, topology.Link{A: "s1", B: "s2", Shape: topology.Shape{Delay: topology.Delay(time.Millisecond)}})
	l := upForTest(t, topo, Options{})
	flow := func(sw, flow string) {
		t.Helper()
		if _, err := l.OfCtl(t.Context(), sw, "add-flow", flow); err != nil {
			t.Fatal(err)
		}
	}
	ports := func(sw string) string {
		t.Helper()
		out, err := l.OfCtl(t.Context(), sw, "dump-ports-desc")
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	// The first link (port 2) is a veth pair, the second (port 3) a cable.
	for _, port := range []string{"2", "3"} {
		a, b := "s1:"+port, "s2:"+port
		for _, sw := range []string{"s1", "s2"} {
			flow(sw, "in_port=1,actions=output:"+port)
			flow(sw, "in_port="+port+",actions=output:1")
		}
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		state := func(sw string, down bool) {
			t.Helper()
			for end := time.Now().Add(testwait.Limit); ; {
				_, after, _ := strings.Cut(ports(sw), " "+port+"(")
				after, _, _ = strings.Cut(after, "speed")
				if strings.Contains(after, "LINK_DOWN") == down {
					return
				}
				if time.Now().After(end) {
					t.Fatalf("port %s of %s: want down %v, is\n%s", port, sw, down, after)
				}
				time.Sleep(10 * time.Millisecond)
			}
		}
		wantPing(t, l, "h1", "h2", traffic.PingOptions{}, 3, 3)

		must(l.LinkDown(t.Context(), a, b))
		state("s1", true)
		state("s2", true)
		wantPing(t, l, "h1", "h2", traffic.PingOptions{Timeout: 50 * time.Millisecond}, 0, 0)
		must(l.LinkDown(t.Context(), a, b)) // again: no change

		must(l.LinkUp(t.Context(), b, a))
		state("s1", false)
		state("s2", false)
		wantPing(t, l, "h1", "h2", traffic.PingOptions{}, 3, 3)

		must(l.LinkSilent(t.Context(), a, b))
		wantPing(t, l, "h1", "h2", traffic.PingOptions{Timeout: 50 * time.Millisecond}, 0, 0)
		state("s1", false)
		state("s2", false)

		must(l.LinkDown(t.Context(), a, b)) // from silent
		state("s1", true)
		state("s2", true)
		must(l.LinkUp(t.Context(), a, b))
		state("s1", false)
		state("s2", false)
		wantPing(t, l, "h1", "h2", traffic.PingOptions{}, 3, 3)
	}
	// A host's link: the switch sees it, and the host keeps its addresses.
	if err := l.LinkDown(t.Context(), "h1", "s1"); err != nil {
		t.Fatal(err)
	}
	wantPing(t, l, "h2", "h1", traffic.PingOptions{Timeout: 50 * time.Millisecond}, 0, 0)
	if err := l.LinkUp(t.Context(), "s1", "h1"); err != nil {
		t.Fatal(err)
	}
	wantPing(t, l, "h2", "h1", traffic.PingOptions{IPv6: true}, 3, 3)
	wantPing(t, l, "h2", "h1", traffic.PingOptions{}, 3, 3)

	for _, c := range [][3]string{
		{"s1", "s2", "2 links join s1 and s2: name one by its ports; allowed: s1:2 s2:2, s1:3 s2:3"},
		{"h1", "h2", "no link joins h1 and h2; h1 is linked to s1:1"},
		{"s9", "s1", "has no switch or host \"s9\""},
	} {
		if err := l.LinkDown(t.Context(), c[0], c[1]); err == nil || !strings.Contains(err.Error(), c[2]) {
			t.Errorf("got  %v\nwant %s", err, c[2])
		}
	}
}

func TestShapes(t *testing.T) {
	t.Parallel()
	topo := standalone(linear(t, 3, 1))
	topo.Links[0].Shape = topology.Shape{Delay: topology.Delay(10 * time.Millisecond), Rate: 20e6}
	topo.Links[1].Shape = topology.Shape{Loss: 20}
	l := upForTest(t, topo, Options{})

	wantRTT(t, l, "h1", "h2", 20, 23)
	wantRTT(t, l, "h2", "h3", 0, 20) // so that neither need ask for the other's address below
	// Lost one way or the other: 36 %.
	r := wantPing(t, l, "h2", "h3", traffic.PingOptions{Count: 500, Interval: 2 * time.Millisecond, Timeout: 5 * time.Second}, 250, 390)
	if r.Error != "" {
		t.Errorf("loss shows as an error of the sender: %s", r.Error)
	}
	p, err := l.Iperf(t.Context(), "h1", "h2", traffic.IperfOptions{Duration: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if p.Mbit < 0.5 || p.Mbit > 21 { // how near to 20 depends on who else uses the machine
		t.Errorf("over a link of 20 Mbit/s TCP reaches %.1f Mbit/s", p.Mbit)
	}

	// Changed while up; delay turns a veth pair into a cable.
	none, loss, delay := topology.Rate(0), topology.Percent(0), topology.Delay(2*time.Millisecond)
	if err := l.ShapeLink(t.Context(), "s2", "s3", Change{Loss: &loss, Delay: &delay}); err != nil {
		t.Fatal(err)
	}
	if err := l.ShapeLink(t.Context(), "s1", "s2", Change{Rate: &none}); err != nil {
		t.Fatal(err)
	}
	if err := l.ShapeLink(t.Context(), "s3", "h3", Change{Delay: &delay}); err != nil {
		t.Fatal(err)
	}
	wantRTT(t, l, "h1", "h3", 28, 33)
	testwait.Until(t, "UDP of 50 Mbit/s faster than the rate of 20 Mbit/s that was lifted", func() bool {
		if p, err = l.Iperf(t.Context(), "h1", "h2", traffic.IperfOptions{Duration: time.Second, UDP: 50e6}); err != nil {
			t.Fatal(err)
		}
		return p.Mbit > 22
	})
	links, err := l.Links()
	if err != nil || links[4].Made != "cable" || links[4].Delay != delay || links[3].Rate != 0 {
		t.Errorf("links %+v, %v", links, err)
	}
}

func TestVLANHosts(t *testing.T) {
	t.Parallel()
	topo := linear(t, 1, 4)
	topo.Controllers = []string{topology.ControllerNone}
	topo.Hosts[0].VLAN, topo.Hosts[1].VLAN, topo.Hosts[2].VLAN = 7, 7, 8
	l := upForTest(t, topo, Options{})
	if _, err := l.OfCtl(t.Context(), "s1", "add-flow", "dl_vlan=7,actions=flood"); err != nil {
		t.Fatal(err)
	}
	wantPing(t, l, "h1", "h2", traffic.PingOptions{}, 3, 3)
	wantPing(t, l, "h1", "h2", traffic.PingOptions{IPv6: true}, 3, 3)
	wantPing(t, l, "h1", "h3", traffic.PingOptions{Timeout: 50 * time.Millisecond}, 0, 0)
	flows, err := l.OfctlDumpFlows(t.Context(), "s1")
	if err != nil || len(flows) != 1 || strings.Contains(flows[0], "n_packets=0") {
		t.Errorf("no frame was tagged: %q, %v", flows, err)
	}
}
