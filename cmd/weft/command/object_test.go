package command

import (
	"cmp"
	"context"
	"encoding/json"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/weft-sdn/weft/api"
)

// applied is what weft … apply -o json prints.
type applied struct{ Added, Changed, Deleted, Unchanged []string }

func networkName(m *api.TenantNetwork) string { return m.GetTenant() + "/" + m.GetName() }

// objects is a controller that keeps objects of some kinds.
type objects struct {
	api.UnimplementedNatServer
	api.UnimplementedTenantsServer
	api.UnimplementedFirewallServer

	gateways []*api.NatGateway
	tenants  []*api.Tenant
	networks []*api.TenantNetwork
	rules    []*api.FirewallRule
	calls    []string
}

// put puts an object in place of that of the same name; without one, it is taken
// away. It reports whether there was one.
func put[T any](list *[]T, name func(T) string, which string, o *T) bool {
	n := len(*list)
	*list = slices.DeleteFunc(*list, func(x T) bool { return name(x) == which })
	there := len(*list) < n
	if o != nil {
		*list = append(*list, *o)
	}
	slices.SortFunc(*list, func(a, b T) int { return cmp.Compare(name(a), name(b)) })
	return there
}

func (o *objects) SetNat(_ context.Context, r *api.SetNatRequest) (*api.NatGateway, error) {
	o.calls = append(o.calls, "set "+r.Gateway.Name)
	g := r.Gateway
	g.State, g.Mac = "up", "06:57:6e:00:00:01"
	g.FirstPort, g.LastPort = cmp.Or(g.FirstPort, 1024), cmp.Or(g.LastPort, 65535)
	put(&o.gateways, (*api.NatGateway).GetName, g.Name, &g)
	return g, nil
}

func (o *objects) DeleteNat(_ context.Context, r *api.DeleteNatRequest) (*api.DeleteNatResponse, error) {
	o.calls = append(o.calls, "delete "+r.Name)
	return &api.DeleteNatResponse{Deleted: put(&o.gateways, (*api.NatGateway).GetName, r.Name, nil)}, nil
}

func (o *objects) ListNats(context.Context, *api.ListNatsRequest) (*api.ListNatsResponse, error) {
	return &api.ListNatsResponse{Gateways: o.gateways}, nil
}

func (o *objects) SetTenant(_ context.Context, r *api.SetTenantRequest) (*api.Tenant, error) {
	o.calls = append(o.calls, "set "+r.Tenant.Name)
	put(&o.tenants, (*api.Tenant).GetName, r.Tenant.Name, &r.Tenant)
	return r.Tenant, nil
}

func (o *objects) DeleteTenant(_ context.Context, r *api.DeleteTenantRequest) (*api.DeleteTenantResponse, error) {
	o.calls = append(o.calls, "delete "+r.Name)
	return &api.DeleteTenantResponse{Deleted: put(&o.tenants, (*api.Tenant).GetName, r.Name, nil)}, nil
}

func (o *objects) ListTenants(context.Context, *api.ListTenantsRequest) (*api.ListTenantsResponse, error) {
	return &api.ListTenantsResponse{Tenants: o.tenants}, nil
}

func (o *objects) SetNetwork(_ context.Context, r *api.SetNetworkRequest) (*api.TenantNetwork, error) {
	o.calls = append(o.calls, "set "+networkName(r.Network))
	r.Network.Segment = 2
	put(&o.networks, networkName, networkName(r.Network), &r.Network)
	return r.Network, nil
}

func (o *objects) DeleteNetwork(_ context.Context, r *api.DeleteNetworkRequest) (*api.DeleteNetworkResponse, error) {
	o.calls = append(o.calls, "delete "+r.Tenant+"/"+r.Name)
	return &api.DeleteNetworkResponse{Deleted: put(&o.networks, networkName, r.Tenant+"/"+r.Name, nil)}, nil
}

func (o *objects) ListNetworks(context.Context, *api.ListNetworksRequest) (*api.ListNetworksResponse, error) {
	return &api.ListNetworksResponse{Networks: o.networks}, nil
}

func (o *objects) AddFirewallRules(_ context.Context, r *api.AddFirewallRulesRequest) (*api.AddFirewallRulesResponse, error) {
	for _, x := range r.Rules {
		o.calls = append(o.calls, "set "+x.Id)
		put(&o.rules, (*api.FirewallRule).GetId, x.Id, &x)
	}
	return &api.AddFirewallRulesResponse{}, nil
}

func (o *objects) DeleteFirewallRules(_ context.Context, r *api.DeleteFirewallRulesRequest) (*api.DeleteFirewallRulesResponse, error) {
	for _, id := range r.Ids {
		o.calls = append(o.calls, "delete "+id)
		put(&o.rules, (*api.FirewallRule).GetId, id, nil)
	}
	return &api.DeleteFirewallRulesResponse{Deleted: uint32(len(r.Ids))}, nil
}

func (o *objects) ListFirewallRules(context.Context, *api.ListFirewallRulesRequest) (*api.ListFirewallRulesResponse, error) {
	return &api.ListFirewallRulesResponse{Rules: o.rules, Total: uint32(len(o.rules))}, nil
}

func (o *objects) serve(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	api.RegisterNatServer(g, o)
	api.RegisterTenantsServer(g, o)
	api.RegisterFirewallServer(g, o)
	go g.Serve(l)
	t.Cleanup(g.Stop)
	t.Setenv("WEFT_SERVER", "http://"+l.Addr().String())
}

// outcome runs weft … apply FILE -o json and returns what it says.
func outcome(t *testing.T, line, text string) (a applied) {
	t.Helper()
	args := append(strings.Fields(line), writeFile(t, "objects.yaml", text), "-o", "json")
	status, out, errs := weftCommand(args...)
	if err := json.Unmarshal([]byte(out), &a); status != 0 || err != nil {
		t.Fatalf("weft %s: status %d, %v\n%s%s", line, status, err, out, errs)
	}
	return a
}

// What a file says is what is there afterwards, a dry run says so before and
// changes nothing, and a second run changes nothing.
func TestApplyObjects(t *testing.T) {
	const gateway = "port: 2, pool: 198.51.100.1, next_hop: 198.51.100.9, gateway: 10.0.0.254, inside: [10.0.0.0/24]"
	for _, c := range []struct {
		line, before, file string
		want               applied
		calls              []string
	}{
		{"nat apply", "gateways:\n- {name: a, dpid: 1, " + gateway + "}\n- {name: b, dpid: 2, " + gateway + "}\n- {name: c, dpid: 3, " + gateway + "}\n",
			"- {name: a, dpid: 0x1, state: down, " + gateway + "}\n- {name: b, dpid: 2, forwards: [{protocol: tcp, port: 80, to: 10.0.0.3}], " + gateway + "}\n- {name: d, dpid: 4, " + gateway + "}\n",
			applied{[]string{"d"}, []string{"b"}, []string{"c"}, []string{"a"}}, []string{"delete c", "set b", "set d"}},
		{"tenants apply", "tenants: [{name: red}, {name: blue}]\nnetworks: [{tenant: red, name: x, members: [{dpid: 1, port: 1}, {mac: 02:00:00:00:00:0A}]}, {tenant: blue, name: y}]\n",
			"tenants: [{name: red, rate_kbps: 5}, {name: green}]\nnetworks: [{tenant: red, name: x, members: [{mac: 02:00:00:00:00:0a}, {dpid: 0x1, port: 1}]}, {tenant: green, name: z}]\n",
			applied{[]string{"green", "green/z"}, []string{"red"}, []string{"blue/y", "blue"}, []string{"red/x"}},
			[]string{"delete blue/y", "delete blue", "set red", "set green", "set green/z"}},
		{"firewall apply", "rules: [{id: one, action: deny, match: {tcp_dst: 22}}, {id: two, action: deny}]\n",
			"rules:\n- {id: one, action: deny, match: {tcp_dst: 23}}\n- {id: config:mine, action: deny}\n",
			applied{[]string{}, []string{"one"}, []string{"two"}, []string{}}, []string{"delete two", "set one"}},
	} {
		o := &objects{}
		o.serve(t)
		outcome(t, c.line, c.before)
		o.rules = append(o.rules, &api.FirewallRule{Id: "config:other"})
		o.calls = nil
		for _, line := range []string{c.line + " --dry-run", c.line} {
			if got := outcome(t, line, c.file); !reflect.DeepEqual(got, c.want) {
				t.Errorf("weft %s: %+v, want %+v", line, got, c.want)
			}
			if strings.HasSuffix(line, "--dry-run") && len(o.calls) > 0 {
				t.Errorf("weft %s: has called %q", line, o.calls)
			}
		}
		if !slices.Equal(o.calls, c.calls) {
			t.Errorf("weft %s: %q, want %q", c.line, o.calls, c.calls)
		}
		if again := outcome(t, c.line, c.file); len(again.Added)+len(again.Changed)+len(again.Deleted) != 0 {
			t.Errorf("weft %s a second time: %+v", c.line, again)
		}
	}
}

// Every mistake of a file has its line, and nothing is done then.
func TestApplyMistakes(t *testing.T) {
	o := &objects{}
	o.serve(t)
	for text, want := range map[string]string{
		"- {name: a}\n- {name: a}\n":                        ":2: gateway a is in line 1, too",
		"gateways:\n- {nam: a}\n":                           ":2: unknown key \"nam\"; allowed: name, dpid",
		"gateways:\n- {name: a, forwards: [{prot: tcp}]}\n": ":2: unknown key \"prot\"; allowed: protocol",
		"gateways:\n- {name: a, forwards: 1}\n":             ":2: forwards: want a list",
		"gateways:\n- {port: 1}\n":                          ":2: gateways: want each with a name",
		"gateways: x\n":                                     ":1: gateways: want a list",
		"policies: []\n":                                    ":1: unknown key \"policies\"; allowed: gateways",
		"":                                                  "nothing in it; want gateways: with a list",
		"x\n":                                               ":1: want gateways: with a list",
	} {
		status, _, errs := weftCommand("nat", "apply", writeFile(t, "objects.yaml", text))
		if status != 1 || !strings.Contains(errs, want) || len(o.calls) > 0 {
			t.Errorf("%q: status %d, calls %q, %s; want %s", text, status, o.calls, errs, want)
		}
	}
}

// The verbs of a kind, for people and as JSON.
func TestObjectVerbs(t *testing.T) {
	o := &objects{tenants: []*api.Tenant{{Name: "blue"}, {Name: "red", MaxHosts: 5}}}
	o.serve(t)
	for _, c := range []struct {
		line   string
		status int
		want   string
	}{
		{"tenants list", 0, "TENANT  MAX HOSTS  RATE kbit/s  MAX MEMBERS\nblue    none       none         none\nred     5          none         none\n"},
		{"tenant list red", 0, "TENANT  MAX HOSTS  RATE kbit/s  MAX MEMBERS\nred     5          none         none\n"},
		{"tenants get red", 0, "TENANT  MAX HOSTS  RATE kbit/s  MAX MEMBERS\nred     5          none         none\n"},
		{"tenants get red -o yaml", 0, "name: red\nmax_hosts: 5\n"},
		{"tenants list red -o yaml", 0, "tenants:\n  - name: red\n"},
		{"tenants get green", 1, "weft: there is no tenant green; weft tenants list shows those that are\n"},
		{"tenants add green --rate 7", 0, "green   none       7            none\n"},
		{"tenants delete green", 0, "tenant green with 0 networks deleted\n"},
		{"tenants delete green", 1, "weft: there was no tenant green; weft tenants list shows those that are\n"},
		{"tenants delete", 2, "weft tenants delete --help"},
	} {
		status, out, errs := weftCommand(strings.Fields(c.line)...)
		if status != c.status || !strings.Contains(out+errs, c.want) {
			t.Errorf("weft %s: status %d\n%s%s\nwant status %d\n%s", c.line, status, out, errs, c.status, c.want)
		}
	}
}
