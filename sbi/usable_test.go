package sbi

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
)

// edited returns the profile of testdata/udm.json with members in place of those it
// has; null takes one away.
func edited(t testing.TB, members string) []byte {
	t.Helper()
	text, _ := json.Marshal(udm(t))
	of := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &of); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(members), &of); err != nil {
		t.Fatal(err)
	}
	text, _ = json.Marshal(of)
	return text
}

// TestUnusable: what consumers are not given an end point for, and what is of no
// harm.
func TestUnusable(t *testing.T) {
	service := func(more string) string {
		return `{"nfServices": [{"serviceInstanceId": "1", "serviceName": "nudm-sdm", "scheme": "http", "nfServiceStatus": "REGISTERED",
			"versions": [{"apiVersionInUri": "v1", "apiFullVersion": "1.0.0"}], "ipEndPoints": [{"ipv4Address": "10.0.0.5", "port": 8000}]` + more + `}]}`
	}
	names := Names{"udm.free5gc.org": {netip.MustParseAddr("10.0.0.5")}}
	for members, want := range map[string]string{
		`{}`: "",
		`{"nsiList": [], "ipv6Addresses": [], "allowedNfTypes": [], "allowedPlmns": []}`: "",
		`{"fqdn": "udm", "locality": "` + strings.Repeat("x", 2000) + `"}`:               "",
		`{"sNssais": [` + strings.Repeat(`{"sst": 1, "sd": "1"},`, 300) + `{"sst": 2}]}`: "",
		`{"heartBeatTimer": 100000, "nfInstanceId": "udm-1"}`:                            "",
		service(``): "",
		service(`, "apiPrefix": "http://10.0.0.5:8000"`):                                    "",
		service(`, "apiPrefix": "http://10.0.0.5:8000/x/"`):                                 "",
		service(`, "apiPrefix": "http://udm.free5gc.org:8000", "fqdn": "udm.free5gc.org"`):  "",
		service(`, "apiPrefix": "http://10.0.0.6:8000"`):                                    "/nudm-sdm/apiPrefix: is the URI of another place",
		service(`, "apiPrefix": "http://10.0.0.5:8001"`):                                    "/nudm-sdm/apiPrefix: is the URI of another place",
		service(`, "apiPrefix": "https://10.0.0.5:8000"`):                                   "/nudm-sdm/apiPrefix: is the URI of another place",
		service(`, "apiPrefix": "://"`):                                                     "/nudm-sdm/apiPrefix: want",
		service(`, "apiPrefix": "x"`):                                                       "/nudm-sdm/apiPrefix: want a path",
		service(`, "ipEndPoints": [{"ipv4Address": "udm.free5gc.org", "port": 8000}]`):      "",
		service(`, "ipEndPoints": [{"ipv4Address": "udm2.free5gc.org", "port": 8000}]`):     "/nudm-sdm/ipEndPoints: want an address",
		service(`, "ipEndPoints": [{"ipv4Address": "10.0.0.5", "transport": "QUIC"}]`):      "/nudm-sdm/ipEndPoints: want an address",
		service(`, "ipEndPoints": [{"ipv4Address": "10.0.0.5", "port": 0}]`):                "/nudm-sdm/ipEndPoints: want ports",
		service(`, "ipEndPoints": [{"ipv4Address": "0.0.0.0", "port": 1}]`):                 "/nudm-sdm/ipEndPoints: want addresses of single hosts",
		service(`, "ipEndPoints": [{"ipv6Address": "fe80::1", "port": 1}]`):                 "/nudm-sdm/ipEndPoints: want addresses of single hosts",
		service(`, "ipEndPoints": [{"ipv4Address": "10.0.0.5", "ipv6Address": "fd00::5"}]`): "",
		service(`, "scheme": "HTTP"`):                                                       "/nudm-sdm/scheme: want",
		service(`, "versions": []`):                                                         "/nudm-sdm/versions: is missing",
		service(`, "load": 101`):                                                            "/nudm-sdm/load: want 0 to 100",
		service(`, "nfServiceStatus": "HIDDEN"`):                                            "/nudm-sdm/nfServiceStatus: want",
		service(`, "allowedNfDomains": ["(?<=a)b"]`):                                        "/nudm-sdm/allowedNfDomains: want",
		`{"nfType": "udm"}`:                          "/nfType: want",
		`{"nfStatus": "CANARY_RELEASE"}`:             "/nfStatus: want",
		`{"load": "7"}`:                              "/load: want an integer",
		`{"capacity": -1}`:                           "/capacity: want 0 to 65535",
		`{"allowedNfTypes": "AMF"}`:                  "/allowedNfTypes: want an array",
		`{"allowedNssais": [{"sst": 1, "sd": "x"}]}`: "/allowedNssais/sd: want",
		`{"NFStatus": "SUSPENDED"}`:                  "/NFStatus: differs in case only",
	} {
		r, err := Read(edited(t, members))
		if err != nil {
			t.Fatal(err)
		}
		if is := r.Unusable(r.Resolved(names)); (is == "") != (want == "") || !strings.HasPrefix(is, want) {
			t.Errorf("%.200s: %q, want %q", members, is, want)
		}
	}
}

// TestHidden: what has addresses that somebody else could read is refused; other odd
// members are the NRF's to judge.
func TestHidden(t *testing.T) {
	for members, want := range map[string]bool{
		`{}`:                                false,
		`{"load": "7", "sNssais": {}}`:      false,
		`{"nfServices": [{"versions": 7}]}`: false,
		`{"nfServices": 7}`:                 true,
		`{"nfServices": [7]}`:               true,
		`{"nfServiceList": {"a": {"ipEndPoints": [{"ipv4Address": 7}]}}}`: true,
		`{"ipv4Addresses": "10.0.0.6"}`:                                   true,
		`{"ipv6Addresses": [["fd00::1"]]}`:                                true,
		`{"nfInstanceId": 7}`:                                             true,
		`{"IPV4Addresses": ["10.0.0.6"]}`:                                 true,
		"{\"ipv4Addre\u017f\u017fes\": [\"10.0.0.6\"]}":                   true,
		`{"nfServices": [{"ipEndpoints": []}]}`:                           true,
		`{"vendor": {"IPv4Addresses": []}}`:                               false,
	} {
		r, err := Read(edited(t, members))
		if err != nil || (r.Hidden() != nil) != want {
			t.Errorf("%s: %v, %v", members, err, r.Hidden())
		}
	}
	if _, err := Read([]byte(`[]`)); err == nil {
		t.Error("an array is a profile")
	}
}

// TestResolved: names that a table has count as addresses.
func TestResolved(t *testing.T) {
	names := Names{"udm": {netip.MustParseAddr("10.0.0.5"), netip.MustParseAddr("fd00::5")}, "sdm": {netip.MustParseAddr("10.0.0.6")}}
	service := NFService{ServiceName: "nudm-sdm", Scheme: "http", NFServiceStatus: Registered}
	for what, c := range map[string]struct {
		edit func(*NFProfile)
		want string
	}{
		"in the profile":            {func(p *NFProfile) { p.IPv4Addresses = []string{"UDM."} }, "10.0.0.5:80 [fd00::5]:80"},
		"the profile's name":        {func(p *NFProfile) { p.FQDN = "udm" }, "10.0.0.5:80 [fd00::5]:80"},
		"the service's name":        {func(p *NFProfile) { p.FQDN, p.NFServices[0].FQDN = "udm", "sdm" }, "10.0.0.6:80"},
		"in the service":            {func(p *NFProfile) { p.NFServices[0].IPEndPoints = []IPEndPoint{{IPv4Address: "sdm"}} }, "10.0.0.6:80"},
		"addresses go before names": {func(p *NFProfile) { p.FQDN, p.IPv4Addresses = "udm", []string{"10.0.0.7"} }, "10.0.0.7:80"},
		"a name that no table has":  {func(p *NFProfile) { p.FQDN = "udm.example.org" }, ""},
		"services by key": {func(p *NFProfile) {
			p.FQDN, p.NFServices, p.NFServiceList = "sdm", nil, map[string]NFService{"a": service}
		}, "10.0.0.6:80"},
	} {
		p := &NFProfile{NFServices: []NFService{service}}
		c.edit(p)
		var got []string
		for _, e := range p.Resolved(names).EndPoints() {
			got = append(got, e.Addr.String())
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}
