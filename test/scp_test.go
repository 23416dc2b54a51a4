package test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/testprogram"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/keeper"

	"github.com/weft-sdn/weft/lab/topology"
	"github.com/weft-sdn/weft/lab/traffic"
)

// core is a simulated 5G core on real switches, with the front of scp in its host
// scp.
type core struct {
	*lab.Lab
	t *testing.T
	c *controller
}

// newCore brings up a core with n instances of each type, and waits until scp
// knows them and stands before the NRF.
func newCore(t *testing.T, n int) *core {
	t.Helper()
	return newCoreAt(t, n, func(lab string) []string {
		return []string{"scp.listen=10.0.0.2:7777", "scp.namespace=weft-" + lab + ".scp"}
	})
}

// newCoreAt is newCore with the front where the settings, which are given the name
// of the lab, say.
func newCoreAt(t *testing.T, n int, front func(lab string) []string) *core {
	t.Helper()
	name := fmt.Sprintf("t%d", time.Now().UnixNano()%1e9)
	c := start(t, options{set: append(front(name), "scp.nrf=http://10.0.0.1:7777", `scp.vips=["10.0.255.0/24"]`)})
	topo, err := topology.Core5G(n)
	if err != nil {
		t.Fatal(err)
	}
	l, err := lab.Up(context.Background(), topo, lab.Options{
		Name: name, Temporary: true, Controllers: []string{"tcp:" + c.address}, KeeperCommand: []string{os.Args[0]}, Weft: testprogram.WithBench(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Down(context.Background()); err != nil {
			t.Error(err)
		}
	})
	g := &core{l, t, c}
	eventually(t, "all instances are known and the front is before the NRF", func() bool {
		s := call(c, api.GetScp, &api.GetScpRequest{})
		return s.Front == "intercepting" && len(s.Producers) == 5*n && s.Nrf == "ok"
	})
	return g
}

// curl asks as a host, and returns the status, 0 for a connection that failed, with
// the body and the instance that has answered. It waits for an answer as long as a test
// does; whoever asks again, or wants no answer, says for how long (soon).
func (g *core) curl(host, url string, more ...string) (status int, body, instance string) {
	g.t.Helper()
	args := append([]string{"curl", "-s", "-m", fmt.Sprint(testwait.Limit.Seconds()), "--http2-prior-knowledge", "-w", "\n%{http_code} %header{x-weft-instance}", url}, more...)
	out, _ := g.Exec(context.Background(), host, args...) // whose exit status the status stands for
	i := strings.LastIndexByte(out, '\n')
	last := strings.Fields(out[i+1:])
	if len(last) == 0 {
		return 0, out, ""
	}
	status, _ = strconv.Atoi(last[0])
	if len(last) > 1 {
		instance = last[1]
	}
	return status, out[:max(i, 0)], instance
}

// soon are the flags of curl that give an answer five seconds.
var soon = []string{"-m", "5"}

// endPoint discovers a type and returns the address of its end point.
func (g *core) endPoint(host, as, target string) string {
	g.t.Helper()
	var found struct {
		NFInstances []struct {
			NFServices []struct {
				IPEndPoints []struct {
					IPv4Address string
					Port        int
				}
			}
		}
	}
	address := ""
	eventually(g.t, "discovery of "+target, func() bool {
		status, body, _ := g.curl(host, "http://10.0.0.1:7777/nnrf-disc/v1/nf-instances?target-nf-type="+target+"&requester-nf-type="+as, soon...)
		if status != 200 || json.Unmarshal([]byte(body), &found) != nil || len(found.NFInstances) != 1 {
			return false
		}
		e := found.NFInstances[0].NFServices[0].IPEndPoints[0]
		address = fmt.Sprintf("%s:%d", e.IPv4Address, e.Port)
		return true
	})
	return address
}

const subscriber = "/nudm-sdm/v2/imsi-1/am-data"

// register has a host register an instance of a type at its own address, which
// these types may use.
func (g *core) register(host, id, of, address, allowed string) (status int, body string) {
	g.t.Helper()
	status, body, _ = g.curl(host, "http://10.0.0.1:7777/nnrf-nfm/v1/nf-instances/"+id, "-X", "PUT", "-H", "Content-Type: application/json", "-d", fmt.Sprintf(
		`{"nfInstanceId": %q, "nfType": %q, "nfStatus": "REGISTERED", "heartBeatTimer": 300, "ipv4Addresses": [%q], "allowedNfTypes": [%s],
		"nfServices": [{"serviceInstanceId": "1", "serviceName": "nbsf-management", "versions": [{"apiVersionInUri": "v1", "apiFullVersion": "1.0.0"}], "scheme": "http",
		"nfServiceStatus": "REGISTERED", "ipEndPoints": [{"ipv4Address": %q, "port": 8888}]}]}`, id, of, address, allowed, address))
	return status, body
}

// TestScp: consumers of a 5G core find one end point for a type, and the switches
// take them to an instance that serves and that they may use.
func TestScp(t *testing.T) {
	t.Parallel()
	g := newCore(t, 2)
	defer explain(g.c)
	vip := g.endPoint("amf1", "AMF", "UDM")
	if !strings.HasPrefix(vip, "10.0.255.") {
		t.Fatalf("UDM is at %s", vip)
	}

	// A consumer has one producer, by a pair of entries; consumers share them.
	status, _, first := g.curl("amf1", "http://"+vip+subscriber)
	if status != 200 {
		t.Fatalf("status %d", status)
	}
	for range 5 {
		if _, _, again := g.curl("amf1", "http://"+vip+subscriber); again != first {
			t.Errorf("first %s, then %s", first, again)
		}
	}
	if _, _, other := g.curl("amf2", "http://"+vip+subscriber); other == first || other == "" {
		t.Errorf("both AMFs have %s", other)
	}
	pairs := call(g.c, api.ListScpPairs, &api.ListScpPairsRequest{Type: "UDM"}).Pairs
	if len(pairs) != 2 || pairs[0].ConsumerType != "AMF" || !pairs[0].Authorised || pairs[0].Direct {
		t.Errorf("pairs %v", pairs)
	}

	// Attachments by way of the end points, with Locations at the producers' own.
	status, body, _ := g.curl("amf1", "http://10.0.1.1:7777/weft-simulation/v1/attachments", "-H", "Content-Type: application/json", "-d", `{"count": 20, "rate": 40, "stay": "100ms"}`)
	var report struct{ Attachments, Detachments struct{ Done, Failed int } }
	if err := json.Unmarshal([]byte(body), &report); err != nil || status != 200 || report.Attachments.Done != 20 || report.Detachments.Done != 20 {
		t.Errorf("attachments: status %d: %s", status, body)
	}

	// An instance that is killed has no new connections, and its consumers go on.
	var address string
	for _, p := range call(g.c, api.GetScp, &api.GetScpRequest{Type: "UDM"}).Producers {
		if p.Instance == first {
			address = p.Address
		}
	}
	dead := "udm" + strings.TrimSuffix(strings.TrimPrefix(address, "10.0.4."), ":7777")
	g.signal(dead, syscall.SIGSTOP)
	eventually(t, "AMF 1 has another UDM", func() bool {
		status, _, now := g.curl("amf1", "http://"+vip+subscriber, "-m", "1")
		return status == 200 && now != first
	})
	g.signal(dead, syscall.SIGCONT)

	// An NRF that is silent is not missed.
	g.signal("nrf", syscall.SIGSTOP)
	if again := g.endPoint("amf2", "AMF", "UDM"); again != vip {
		t.Errorf("without the NRF: %s", again)
	}
	if again := g.endPoint("smf1", "SMF", "UDM"); again != vip {
		t.Errorf("without the NRF, as SMF: %s", again)
	}
	g.signal("nrf", syscall.SIGCONT)
	g.authorised()
}

// authorised tells apart who may use a producer that PCF 1 has registered.
func (g *core) authorised() {
	g.t.Helper()
	t := g.t
	const id = "11111111-1111-4111-8111-111111111111"
	if status, body := g.register("smf1", id, "BSF", "10.0.5.1", `"AMF"`); status != 403 || !strings.Contains(body, "10.0.5.1 is not at the port") {
		t.Errorf("registration of another's address: %d %s", status, body)
	}
	if status, body := g.register("pcf1", id, "BSF", "10.0.5.1", `"AMF"`); status != 201 {
		t.Fatalf("registration: %d %s", status, body)
	}
	if status, body := g.register("smf1", id, "BSF", "10.0.2.1", `"SMF"`); status != 403 {
		t.Errorf("instance of another: %d %s", status, body)
	}
	server, err := g.Start(context.Background(), "pcf1", testprogram.WithBench(t), "nf", "agent", "--listen", "10.0.5.1:8888", "--to", "http://10.0.5.1:7777")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Process.Kill(); _ = server.Wait() }()
	vip := g.endPoint("amf1", "AMF", "BSF")
	const path = "/weft-simulation/v1/report"
	eventually(t, "AMF may use the BSF", func() bool {
		status, _, _ := g.curl("amf1", "http://"+vip+path, soon...)
		return status != 0 && status != 403
	})
	url := "http://10.0.0.1:7777/nnrf-disc/v1/nf-instances?target-nf-type=BSF&requester-nf-type="
	for _, as := range []string{"SMF", "AMF"} {
		if status, body, _ := g.curl("smf1", url+as); status != 403 {
			t.Errorf("SMF discovers the BSF as %s: %d %s", as, status, body)
		}
	}
	if status, body, _ := g.curl("smf1", "http://"+vip+"/nbsf-management/v1/x"); status != 403 || !strings.Contains(body, "may not use") {
		t.Errorf("SMF at the end point: %d %s", status, body)
	}
	if status, body, _ := g.curl("smf1", "http://10.0.5.1:8888"+path, soon...); status != 0 {
		t.Errorf("SMF at the BSF's own address: %d %s", status, body)
	}
	eventually(t, "SMF is refused there, too, when the two have a route", func() bool {
		r, err := g.Lab.Ping(context.Background(), "smf1", "pcf1", traffic.PingOptions{Count: 1})
		if err != nil || r.Lost() != 0 {
			return false
		}
		status, _, _ := g.curl("smf1", "http://10.0.5.1:8888"+path, soon...)
		return status == 0
	})
	if status, _, _ := g.curl("amf1", "http://10.0.5.1:8888"+path); status == 0 {
		t.Error("AMF at the BSF's own address is refused")
	}
	// Its own address may be forbidden, where the end point is to be used: also to a pair whose
	// entries let its connections pass.
	call(g.c, api.SetScpPolicy, &api.SetScpPolicyRequest{Policy: &api.ScpPolicy{Type: "BSF", OwnAddress: "forbid"}})
	eventually(t, "AMF is refused at the BSF's own address", func() bool { status, _, _ := g.curl("amf1", "http://10.0.5.1:8888"+path, soon...); return status == 0 })
	if status, _, _ := g.curl("amf1", "http://"+vip+path); status == 0 || status == 403 {
		t.Errorf("AMF at the end point: %d", status)
	}
	if list := call(g.c, api.ListScpPairs, &api.ListScpPairsRequest{Type: "BSF"}).Pairs; !slices.ContainsFunc(list, func(p *api.ScpPair) bool {
		return p.Consumer == "10.0.1.1" && p.Direct && p.Refused > 0 && strings.Contains(p.Reason, "forbids")
	}) {
		t.Errorf("pairs %v", list)
	}
	call(g.c, api.DeleteScpPolicy, &api.DeleteScpPolicyRequest{Type: "BSF"})
	eventually(t, "AMF may use it again", func() bool { status, _, _ := g.curl("amf1", "http://10.0.5.1:8888"+path, soon...); return status != 0 })
	// Draining, and back.
	if p := call(g.c, api.DrainProducer, &api.DrainProducerRequest{Instance: id}); p.State != "draining" {
		t.Errorf("drained: %v", p)
	}
	eventually(t, "nobody serves", func() bool {
		status, _, _ := g.curl("amf2", "http://"+vip+"/nbsf-management/v1/x", soon...)
		return status == http.StatusServiceUnavailable
	})
	call(g.c, api.DrainProducer, &api.DrainProducerRequest{Instance: id, Undo: true})
	eventually(t, "the BSF serves", func() bool {
		status, _, _ := g.curl("amf2", "http://"+vip+path, soon...)
		return status != 0 && status != 503
	})
}

// signal sends a signal to the program of a host.
func (g *core) signal(host string, s syscall.Signal) {
	g.t.Helper()
	i := slices.IndexFunc(g.Programs(context.Background()), func(p keeper.ProgramStatus) bool { return p.Host == host })
	if i < 0 {
		g.t.Fatalf("nothing runs in %s", host)
	}
	if err := syscall.Kill(g.Programs(context.Background())[i].PID, s); err != nil {
		g.t.Fatal(err)
	}
}
