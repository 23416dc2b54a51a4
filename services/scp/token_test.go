package scp

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"testing"

	"github.com/weft-sdn/weft/sbi"
)

// Requests for access tokens, and tokens, pass as they are. Who asks for one for an end point
// gets one for its type: it is good at every producer for which the end point stands.
func TestTokens(t *testing.T) {
	g := newRig(t)
	g.register(1, sbi.AMF)
	g.register(5, sbi.UDM)
	_, found, _ := g.discover(1, sbi.AMF, sbi.UDM, "")
	if len(found.NFInstances) != 1 || found.NFInstances[0].NFInstanceID == id(5) {
		t.Fatalf("found %+v", found.NFInstances)
	}
	end := found.NFInstances[0].NFInstanceID
	got := make(chan string, 1)
	g.handler.Store(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost { // a survey
			g.nrf.ServeHTTP(w, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		got <- fmt.Sprintf("%s %s %s", r.URL.Path, body, r.Header.Get("Authorization"))
		_, _ = io.WriteString(w, `{"access_token": "a.b.c", "token_type": "Bearer", "x": 1.50}`)
	}))
	const grant = "grant_type=client_credentials&scope=nudm-sdm+nudm-uecm&nfInstanceId="
	for what, c := range map[string]struct {
		from      int
		ask, want string // want is empty if it passes as it is
	}{
		"for a type":           {1, grant + id(1) + "&nfType=AMF&targetNfType=UDM", ""},
		"for an instance":      {1, grant + id(1) + "&targetNfInstanceId=" + id(5), ""},
		"for an end point":     {1, grant + id(1) + "&targetNfInstanceId=" + end, "nfType=AMF&targetNfType=UDM"},
		"and says what it is":  {9, grant + id(9) + "&nfType=SMF&targetNfInstanceId=" + end, "nfType=SMF&targetNfType=UDM"},
		"of another's":         {9, grant + id(1) + "&targetNfInstanceId=" + end, ""},
		"of who is not known":  {9, grant + id(9) + "&targetNfInstanceId=" + end, ""},
		"which cannot be read": {1, "targetNfInstanceId=" + end + "&x=%zz", ""},
	} {
		resp, body := g.do(c.from, http.MethodPost, "/oauth2/token", c.ask, "Content-Type", "application/x-www-form-urlencoded", "Authorization", "Basic eA==")
		if resp.StatusCode != http.StatusOK || body != `{"access_token": "a.b.c", "token_type": "Bearer", "x": 1.50}` {
			t.Errorf("%s: %s %s", what, resp.Status, body)
		}
		want := c.ask
		if c.want != "" {
			form, _ := url.ParseQuery(c.want + "&" + grant + id(c.from))
			want = form.Encode()
		}
		if asked := <-got; asked != "/oauth2/token "+want+" Basic eA==" {
			t.Errorf("%s: the NRF is asked %s, want %s", what, asked, want)
		}
	}
}

// A discovery that the NRF lets through for one access token is not answered to who has
// another, or none, before the NRF has been asked.
func TestDiscoveryNeedsToken(t *testing.T) {
	g := newRig(t)
	g.register(1, sbi.AMF)
	g.register(5, sbi.UDM)
	g.handler.Store(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == discoveryPath && r.Header.Get("Authorization") != "Bearer good" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		g.nrf.ServeHTTP(w, r)
	}))
	for i, c := range []struct {
		token string
		want  int
	}{{"Bearer good", 200}, {"Bearer bad", 401}, {"", 401}, {"Bearer good", 200}} {
		var header []string
		if c.token != "" {
			header = []string{"Authorization", c.token}
		}
		if status, _, _ := g.discover(1, sbi.AMF, sbi.UDM, "", header...); status != c.want {
			t.Errorf("%d, %q: %d, want %d", i, c.token, status, c.want)
		}
	}
	g.nrf.set(func(n *fakeNRF) {
		if n.searches != 1 {
			t.Errorf("the NRF was asked %d times with the good one", n.searches)
		}
	})
}
