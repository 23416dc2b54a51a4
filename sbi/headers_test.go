package sbi

import (
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// The headers of a delegated discovery, as implementations write them.
func TestDelegatedQuery(t *testing.T) {
	h := http.Header{}
	for name, v := range map[string]string{
		"3gpp-sbi-discovery-target-nf-type": "UDM", "3gpp-Sbi-Discovery-service-names": "nudm-sdm%2Cnudm-uecm", "3GPP-SBI-DISCOVERY-SNSSAIS": `[{"sst":1}]`,
		"3gpp-Sbi-Discovery-target-nf-instance-id": "nfinst=54804518-4191-46b3-955c-ac631f953ed8; nfservinst=1", "3gpp-Sbi-Discovery-dnn": "50%", "3gpp-Sbi-Target-apiRoot": "http://10.0.0.1",
	} {
		h.Add(name, v)
	}
	v, err := DelegatedQuery(h)
	if want := "dnn=50%25&service-names=nudm-sdm%2Cnudm-uecm&snssais=%5B%7B%22sst%22%3A1%7D%5D&target-nf-instance-id=54804518-4191-46b3-955c-ac631f953ed8&target-nf-type=UDM"; err != nil || v.Encode() != want {
		t.Errorf("%s, %v; want %s", v.Encode(), err, want)
	}
	h.Set("X", "y")
	if WithoutDelegation(h); len(h) != 1 {
		t.Errorf("passed on: %v", h)
	}
	h["3gpp-Sbi-Discovery-Dnn"] = []string{"a", "b"}
	if _, err := DelegatedQuery(h); ProblemOf(err).Status != 400 {
		t.Error(err)
	}
	for agent, want := range map[string]NFType{"AMF": "AMF", "SMF-smf1.5gc": "SMF", "AUSF/1.0": "AUSF", "Mozilla/5.0": "", "": ""} {
		if got := ClientType(http.Header{"User-Agent": {agent}}); got != want {
			t.Errorf("%q: %q", agent, got)
		}
	}
}

func TestParseAPIRoot(t *testing.T) {
	for text, want := range map[string]APIRoot{
		"http://10.0.0.1:7777":               {Scheme: "http", Addr: netip.MustParseAddrPort("10.0.0.1:7777")},
		"https://[fd00::1]/a/b/":             {Scheme: "https", Addr: netip.MustParseAddrPort("[fd00::1]:443"), Prefix: "/a/b"},
		"http://UDM.5gc.example:80":          {Scheme: "http", Host: "udm.5gc.example", Addr: netip.AddrPortFrom(netip.Addr{}, 80)},
		"http://[::ffff:10.0.0.1]":           {Scheme: "http", Addr: netip.MustParseAddrPort("10.0.0.1:80")},
		"":                                   {},
		"10.0.0.1:80":                        {Scheme: "bad"},
		"ftp://10.0.0.1":                     {Scheme: "bad"},
		"http://user@10.0.0.1":               {Scheme: "bad"},
		"http://10.0.0.1/?x":                 {Scheme: "bad"},
		"http://10.0.0.1/#x":                 {Scheme: "bad"},
		"http://10.0.0.1/a/../b":             {Scheme: "bad"},
		"http://10.0.0.1//b":                 {Scheme: "bad"},
		"http://10.0.0.1/%2e":                {Scheme: "bad"},
		"http://10.0.0.1:0":                  {Scheme: "bad"},
		"http://10.0.0.1:99999":              {Scheme: "bad"},
		"http://[fe80::1%25eth0]":            {Scheme: "bad"},
		"http://":                            {Scheme: "bad"},
		"http:opaque":                        {Scheme: "bad"},
		"http://" + strings.Repeat("x", 300): {Scheme: "bad"},
	} {
		h := http.Header{}
		if text != "" {
			h.Set("3gpp-Sbi-Target-apiRoot", text)
		}
		switch got, err := ParseAPIRoot(h); {
		case want.Scheme == "bad" && ProblemOf(err).Cause != MandatoryMemberIncorrect, want.Scheme != "bad" && (err != nil || got != want):
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	if _, err := ParseAPIRoot(http.Header{TargetAPIRoot: {"http://a", "http://b"}}); ProblemOf(err).Status != 400 {
		t.Error(err)
	}
}

func TestParseBinding(t *testing.T) {
	const id = "54804518-4191-46b3-955c-ac631f953ed8"
	for text, want := range map[string]Binding{
		"bl=nf-instance; nfinst=" + id + "; nfset=set1.udmset.5gc":            {Level: "nf-instance", Instance: id, Set: "set1.udmset.5gc"},
		"BL=nf-set;nfset=set%31; NFSET=other; scope=callback":                 {Level: "nf-set", Set: "set1"},
		"bl=nfservice-instance; nfservinst=x; nfinst=" + id + `;servname="n"`: {Level: "nfservice-instance", Instance: id, Service: "x", ServiceName: "n"},
		"":                           {},
		"nfinst=" + id:               {Level: "bad"},
		"bl=other; nfinst=" + id:     {Level: "bad"},
		"bl=nf-instance":             {Level: "bad"},
		"bl=nf-instance; nfinst=xyz": {Level: "bad"},
		";;;=;=":                     {Level: "bad"},
	} {
		h := http.Header{}
		if text != "" {
			h.Set("3gpp-Sbi-Routing-Binding", text)
		}
		switch got, err := ParseBinding(h); {
		case want.Level == "bad" && ProblemOf(err).Cause != MandatoryMemberIncorrect, want.Level != "bad" && (err != nil || got != want):
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

// A request that comes back, or has no hops left, is refused.
func TestHop(t *testing.T) {
	for _, c := range []struct {
		via, hops string
		want      Cause
		left      string
	}{
		{"", "", "", ""}, {"2.0 SCP-other, 1.1 proxy", "3", "", "2"}, {"", "1; nodetype=scp", "", "0; nodetype=scp"}, {"", "0; nodetype=sepp", "", "0; nodetype=sepp"},
		{"2.0 SCP-other,2.0 scp-ME", "", LoopDetected, ""}, {"", "0", HopsReached, "0"}, {"", "many", OptionalMemberIncorrect, "many"}, {"", "-1", OptionalMemberIncorrect, "-1"},
	} {
		h := http.Header{}
		if c.via != "" {
			h.Set("Via", c.via)
		}
		if c.hops != "" {
			h.Set("3gpp-Sbi-Max-Forward-Hops", c.hops)
		}
		var p *ProblemDetails
		err := Hop(h, "2.0", "SCP-me")
		if errors.As(err, &p); c.want == "" && err != nil || c.want != "" && (p == nil || p.Cause != c.want && p.InvalidParams == nil) || h.Get("3gpp-Sbi-Max-Forward-Hops") != c.left {
			t.Errorf("%+v: %v, %v", c, err, h)
		}
		if err == nil && Hop(h, "2.0", "SCP-me") == nil {
			t.Errorf("%+v: a second time", c)
		}
	}
	for text, want := range map[string]time.Duration{"": time.Second, "x": time.Second, "0": time.Second, "1500": 1500 * time.Millisecond, "99999": 5 * time.Second} {
		if got := ResponseTime(http.Header{MaxRspTime: {text}}, time.Second, 5*time.Second); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// FuzzHeaders: no header makes a reader panic, or yields a target without a host.
func FuzzHeaders(f *testing.F) {
	f.Add("3gpp-Sbi-Target-apiRoot", "http://[fd00::1]:80/a")
	f.Add("3gpp-Sbi-Routing-Binding", "bl=nf-set; nfset=x")
	f.Add("3gpp-Sbi-Discovery-target-nf-instance-id", "nfinst=%zz")
	f.Add("3gpp-Sbi-Max-Forward-Hops", "1;nodetype")
	f.Fuzz(func(t *testing.T, name, value string) {
		h := http.Header{}
		h.Set(name, value)
		if r, err := ParseAPIRoot(h); err == nil && r.Scheme != "" && (r.Host == "") != r.Addr.Addr().IsValid() {
			t.Errorf("%+v", r)
		}
		if b, err := ParseBinding(h); err == nil && b.Level != "" && b.Instance == "" && b.Set == "" && b.ServiceSet == "" {
			t.Errorf("%+v", b)
		}
		_, _ = DelegatedQuery(h)
		_ = Hop(h, "2.0", "SCP-me")
		ClientType(h)
		if WithoutDelegation(h); h.Get("3gpp-Sbi-Target-apiRoot") != "" {
			t.Errorf("%v", h)
		}
	})
}
