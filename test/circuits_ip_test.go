package test

import (
	"fmt"
	"testing"
	"time"

	"github.com/weft-sdn/weft/lab/traffic"
)

// carrierLine is two provider edges with a core between them, and two hosts each of a customer
// with a circuit and of one whom the nodes route for.
const carrierLine = `
name: line
switches:
  - {name: pe1, kind: hybrid}
  - {name: cr1, kind: hybrid}
  - {name: pe2, kind: hybrid}
hosts:
  - {name: vll1, switch: pe1}
  - {name: vll2, switch: pe2}
  - {name: ip1, switch: pe1, gateway: true}
  - {name: ip2, switch: pe2, gateway: true}
links:
  - {a: pe1, b: cr1}
  - {a: cr1, b: pe2}
routing: {ipv4_only: true}
control: {mode: in-band, at: cr1}
`

// TestIPCircuit: IPv4, IPv6 and TCP through a circuit of payload ip, with a
// controller, without one, and after it is back; then with another device at an end. Beside it
// a tunnel carries IPv4 packets of customers whom the nodes route for.
func TestIPCircuit(t *testing.T) {
	t.Parallel()
	f := carrierUp(t, carrierLine)
	if out, err := f.command(t.Context(), "l2vpn", "add", "vll", f.at("vll1"), f.at("vll2"), "--payload", "ip"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	f.circuitsUp(1)
	reach := func(when string, families ...bool) {
		t.Helper()
		for _, v6 := range families {
			f.eventually(fmt.Sprint("a ping ", when, ", IPv6: ", v6), func() bool {
				r, err := f.l.Ping(t.Context(), "vll1", "vll2", traffic.PingOptions{IPv6: v6})
				return err == nil && r.Received > 0
			})
			f.eventually(fmt.Sprint("TCP ", when, ", IPv6: ", v6), func() bool {
				r, err := f.l.Iperf(t.Context(), "vll1", "vll2", traffic.IperfOptions{IPv6: v6, Duration: time.Second})
				return err == nil && r.Mbit > 0
			})
		}
	}
	known := func(macs ...string) {
		t.Helper()
		f.eventually(fmt.Sprint("devices ", macs), func() bool {
			var c struct{ Members []struct{ Mac string } }
			f.json(&c, "l2vpn", "get", "vll")
			return len(c.Members) == 2 && c.Members[0].Mac == macs[0] && c.Members[1].Mac == macs[1]
		})
	}
	steered(t, f)
	near, far := mac(t, f.l, "vll1").String(), mac(t, f.l, "vll2").String()
	reach("at first", false, true)
	known(near, far)
	f.killed()
	reach("without a controller", false, true)
	f.supervise()
	f.allUp()
	f.circuitsUp(1)
	reach("with a controller again", false, true)
	known(near, far)
	far = "02:aa:bb:cc:dd:ee"
	if out, err := f.l.Exec(t.Context(), "vll2", "sh", "-c", "ip link set eth0 down && ip link set eth0 address "+far+" && ip link set eth0 up"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	reach("to another device", false)
	known(near, far)
}

// steered wants packets between hosts with a gateway to go through a tunnel, and to be counted.
func steered(t *testing.T, f *carrierFaults) {
	t.Helper()
	to, err := f.l.Host("ip2")
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"tunnel", "add", "there", "--from", "pe1", "--to", "pe2"},
		{"tunnel", "steer", "add", "web", "--tunnel", "there", "-m", "eth_type=0x0800,ipv4_dst=" + to.IPv4.Addr().String()},
	} {
		f.eventually(fmt.Sprint(args), func() bool { // once the nodes are reported
			_, err := f.command(t.Context(), args...)
			return err == nil
		})
	}
	f.eventually("packets through the tunnel", func() bool {
		r, err := f.l.Ping(t.Context(), "ip1", "ip2", traffic.PingOptions{})
		var list struct {
			Steers []struct{ State, Packets string }
		}
		f.json(&list, "tunnel", "steer", "list")
		return err == nil && r.Received > 0 && len(list.Steers) == 1 && list.Steers[0].State == "up" && list.Steers[0].Packets != "" && list.Steers[0].Packets != "0"
	})
}
