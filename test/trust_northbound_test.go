package test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/testwait"
)

// trustNorthbound has clients of many kinds take all that the northbound and
// Ryu's REST have for connections, as root and as another user of the machine,
// from one address and from many. Whoever may change the network gets in all the
// same, at once, and memory stays bounded.
func trustNorthbound(t *testing.T, f *faults) {
	d := f.prepare(t, "name: one\nworkers:\n  all: {services: [southbound, discovery, hosts, paths, forwarding, flowrules, firewall, stats, qos, ryu, gateway]}\n")
	ryu := freeAddress(t)
	d.flags = []string{"--ryu", ryu}
	d.supervise()
	d.allUp()
	before := d.resident()

	var open []net.Conn
	defer func() {
		for _, c := range open {
			c.Close()
		}
	}()
	const upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
	stall := fmt.Sprintf("Host: localhost\r\nContent-Length: %d\r\n\r\n%s", 4<<20, strings.Repeat(" ", 64<<10))
	for _, attack := range []struct{ what, text string }{
		{"silent", ""},
		{"idle", "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"},
		{"a header without an end", "GET /v1/hosts HTTP/1.1\r\nX: "},
		{"events", "GET /v1/events HTTP/1.1\r\nHost: localhost\r\n" + upgrade},
		{"events of Ryu's", "GET /v1.0/topology/ws HTTP/1.1\r\nHost: localhost\r\n" + upgrade},
		{"a body without an end", "POST /v1/firewall/check HTTP/1.1\r\n" + stall},
		{"a change without an end", "POST /v1/flows HTTP/1.1\r\n" + stall},
		{"HTTP/2 that says nothing", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"},
		{"an answer that is not read", strings.Repeat("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", 100)},
	} {
		uids := []int{0, 65533}
		if attack.what == "an answer that is not read" { // what root's own requests hold is bounded, too
			uids[0] = 65533
		}
		for i := range 1200 {
			address := d.north
			if i%4 == 0 {
				address = ryu
			}
			from := net.IPv4(127, 0, 0, 1)
			if i%2 == 0 {
				from = net.IPv4(127, 1, byte(i>>8), byte(i))
			}
			c, err := dialFrom(uids[i/2%2], from, address)
			if err != nil {
				t.Fatalf("%s: %v", attack.what, err)
			}
			open = append(open, c)
			c.SetWriteDeadline(time.Now().Add(time.Second))
			io.WriteString(c, attack.text) // the connection may be closed already
		}
		began := time.Now()
		if _, err := d.command(t.Context(), "get", "switches"); err != nil {
			t.Errorf("%s: %v", attack.what, err)
		}
		client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
		for url, body := range map[string]string{"http://" + d.north + "/v1/flows": `{"flows":[{"dpid":"1","match":{"in_port":"1"}}],"no_wait":true}`, "http://" + ryu + "/stats/flow/1": "{}"} {
			resp, err := client.Post(url, "application/json", strings.NewReader(body))
			if err != nil || strings.Contains(url, d.north) && resp.StatusCode != http.StatusOK {
				t.Errorf("%s, then %s: %v %v", attack.what, url, resp, err)
			}
			if err == nil {
				resp.Body.Close()
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), testwait.Limit)
		if _, err := api.NewHostsClient(d.conn).ListHosts(ctx, &api.ListHostsRequest{}); err != nil {
			// Its connection may be one that had to go; the next is let in.
			if _, err := api.NewHostsClient(d.conn).ListHosts(ctx, &api.ListHostsRequest{}); err != nil {
				t.Errorf("%s, then gRPC: %v", attack.what, err)
			}
		}
		cancel()
		t.Logf("%s: four operators got in within %v; %d MiB", attack.what, time.Since(began).Round(time.Millisecond), d.resident()>>20)
	}
	if more := d.resident() - before; more > 512<<20 {
		t.Errorf("the controller takes %d MiB more", more>>20)
	}
	eventually(t, "most connections have made room", func() bool { return d.counted("weft_gateway_refused_total", "made_room") > 1000 })
}

// dialFrom connects from an address of this machine, as a user of it.
func dialFrom(uid int, from net.IP, to string) (conn net.Conn, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked if the thread is another user's: it ends with the goroutine
		if uid == 0 {
			defer runtime.UnlockOSThread()
		} else if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0)); errno != 0 {
			err = syscall.Errno(errno)
			return
		}
		conn, err = (&net.Dialer{LocalAddr: &net.TCPAddr{IP: from}, Timeout: 20 * time.Second}).Dial("tcp", to)
	}()
	<-done
	return conn, err
}
