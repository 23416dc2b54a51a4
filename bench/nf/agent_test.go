package nf

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weft-sdn/weft/sbi"
)

// TestAgent has an SMF registered at an agent's address: what follows a request
// passes the agent, too, if the consumer does not go where Location says.
func TestAgent(t *testing.T) {
	t.Parallel()
	nrf := startNRF(t, DefaultRepository())
	run(t, nrf, sbi.AUSF)
	smf, _ := run(t, nrf, sbi.SMF)
	var passed atomic.Int64
	agent := serve(t, TLS{}, func(e *Endpoint) http.Handler {
		h, err := Agent(e.Client, []string{smf.Endpoint.Root()}, discard())
		if err != nil {
			t.Fatal(err)
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			passed.Add(1)
			h.ServeHTTP(w, r)
		})
	})
	p := smf.profile()
	port := int(agent.Addr.Port())
	p.NFServices[0].IPEndPoints[0].Port = &port
	b, _ := json.Marshal(p)
	if resp, text := ask(t, nrf, "PUT", managementPath+"/nf-instances/"+smf.ID, plain, string(b)); resp.StatusCode != 200 {
		t.Fatal(resp.Status, text)
	}
	for ignore, want := range map[bool]int64{false: 10, true: 30} {
		passed.Store(0)
		amf, _ := run(t, nrf, sbi.AMF, func(c *Config) { c.Consuming.IgnoreLocation = ignore })
		if r := attach(t, amf, 10); r.Detachments.Done != 10 || r.Instances[sbi.SMF][smf.ID] != 30 || passed.Load() != want {
			t.Errorf("ignores Location %v: %d of 30 requests passed the agent, want %d; %+v", ignore, passed.Load(), want, r)
		}
	}
}

// TestAgentTurns has an agent with two addresses, of which one does not answer.
func TestAgentTurns(t *testing.T) {
	t.Parallel()
	there := startNRF(t, DefaultRepository())
	gone, err := Listen("127.0.0.1:0", TLS{}, false)
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	agent := serve(t, TLS{}, func(e *Endpoint) http.Handler {
		h, err := Agent(e.Client, []string{there.Root(), gone.Root()}, discard())
		if err != nil {
			t.Fatal(err)
		}
		return h
	})
	for i := range 4 {
		resp, text := ask(t, agent, "GET", managementPath+"/nf-instances", "", "")
		if good := resp.StatusCode == 200; good != (i%2 == 0) || !good && !strings.Contains(text, "TARGET_NF_NOT_REACHABLE") {
			t.Errorf("the %d-th: %v %s", i, resp.Status, text)
		}
	}
	for _, to := range [][]string{nil, {"10.0.0.5:7777"}, {"ftp://x"}} {
		if _, err := Agent(http.DefaultClient, to, discard()); err == nil {
			t.Errorf("to %q is allowed", to)
		}
	}
}
