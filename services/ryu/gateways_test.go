package ryu

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/wefttest"
)

// TestRouterService: routers are those of the router service, what it refuses is
// told, and no request does harm.
func TestRouterService(t *testing.T) {
	wefttest.Run(t, Spec(Process{}), func(t *testing.T, h *wefttest.Harness) {
		c := newBrowser(t, h, "")
		r := &api.VirtualRouter{Dpid: "0000000000000005", Vlan: 2, Addresses: []*api.RouterAddress{{Id: 3, Address: "10.0.0.1/24"}, {Id: 4, Address: "fd00::1/64"}},
			Routes: []*api.RouterRoute{{Id: 7, Destination: "10.1.0.0/16", Gateway: "10.0.0.9", GatewayMac: "02:00:00:00:00:09"}, {Id: 8, Destination: "0.0.0.0/0", Gateway: "10.0.0.8"}}}
		var refusal error
		var asked string
		wefttest.Fake(h, api.ListRouters, func(context.Context, *api.ListRoutersRequest) (*api.ListRoutersResponse, error) {
			return &api.ListRoutersResponse{Routers: []*api.VirtualRouter{r}}, refusal
		})
		wefttest.Fake(h, api.AddRouterAddress, func(_ context.Context, m *api.AddRouterAddressRequest) (*api.AddRouterAddressResponse, error) {
			if m.Address == "10.66.0.1/24" {
				return nil, api.Errorf(codes.ResourceExhausted, "too many")
			}
			asked = m.Address
			return &api.AddRouterAddressResponse{Address: &api.RouterAddress{Id: 5, Address: m.Address}, Added: true}, nil
		})
		wefttest.Fake(h, api.AddRouterRoute, func(_ context.Context, m *api.AddRouterRouteRequest) (*api.AddRouterRouteResponse, error) {
			asked = m.Destination + " " + m.Gateway
			return &api.AddRouterRouteResponse{Route: &api.RouterRoute{Id: 9, Destination: m.Destination, Gateway: m.Gateway}, Added: true}, nil
		})
		wefttest.Fake(h, api.DeleteRouterAddress, func(_ context.Context, m *api.DeleteRouterAddressRequest) (*api.DeleteRouterAddressResponse, error) {
			asked = m.Address
			return &api.DeleteRouterAddressResponse{Deleted: true}, nil
		})
		wefttest.Fake(h, api.DeleteRouterRoute, func(_ context.Context, m *api.DeleteRouterRouteRequest) (*api.DeleteRouterRouteResponse, error) {
			asked = m.Destination
			return &api.DeleteRouterRouteResponse{Deleted: true}, nil
		})
		h.Start()
		const path = "/router/0000000000000005/2"
		c.want("GET", path, "", 404, `{"result":"failure","details":"Router SW is not connected. : switch_id=0000000000000005"}`)
		c.want("GET", "/router/all", "", 404, `{"result":"failure","details":"Router SW is not connected. : switch_id=all"}`)
		wefttest.Publish(h, api.SwitchChangedEvent, switchUp(5, "1.3"))
		h.Settle()
		c.want("GET", path, "", 200, `[{"internal_network":[{"address":[{"address_id":3,"address":"10.0.0.1/24"},{"address_id":4,"address":"fd00::1/64"}],"route":[{"route_id":7,"destination":"10.1.0.0/16","gateway":"10.0.0.9"}],"vlan_id":2}],"switch_id":"0000000000000005"}]`)
		c.want("GET", "/router/0000000000000005", "", 200, `[{"internal_network":[{}],"switch_id":"0000000000000005"}]`)
		c.want("GET", "/router/0000000000000005/9", "", 200, `[{"internal_network":[{"vlan_id":"9"}],"switch_id":"0000000000000005"}]`)
		did := func(details string) string {
			return `[{"command_result":[{"result":"success","details":"` + details + `","vlan_id":2}],"switch_id":"0000000000000005"}]`
		}
		failed := func(details string) string {
			return `[{"command_result":[{"result":"failure","details":"` + details + `","vlan_id":2}],"switch_id":"0000000000000005"}]`
		}
		c.want("POST", path, `{"address": "10.9.0.1/24"}`, 200, did("Add address [address_id=5]"))
		c.want("POST", path, `{"gateway": "10.0.0.7", "destination": "10.7.3.0/16"}`, 200, did("Add route [route_id=9]"))
		if asked != "10.7.0.0/16 10.0.0.7" {
			t.Errorf("asked for %s", asked)
		}
		c.want("POST", path, `{"gateway": "10.0.0.7", "destination": "10.1.2.0/16"}`, 200, failed("Destination overlaps [route_id=7]"))
		c.want("POST", path, `{"gateway": "10.0.0.1"}`, 200, failed("Gateway=10.0.0.1 is used as default gateway of address_id=3"))
		c.want("POST", path, `{"address": "10.66.0.1/24"}`, 200, failed("too many"))
		c.want("DELETE", path, `{"address_id": "all"}`, 200, did("Delete address [address_id=4], Skip delete (related route exist) [address_id=3]"))
		c.want("DELETE", path, `{"route_id": 8}`, 200, did("Delete route [route_id=8]"))
		if asked != "0.0.0.0/0" {
			t.Errorf("asked for %s", asked)
		}
		for _, body := range []string{`{}`, `[]`, `7`, `null`, `{"address": {}}`, `{"address": "::1/64"}`, `{"address": "10.0.0.1/99999999999999999999"}`, `{"gateway": []}`, `{"gateway": "fd00::9"}`,
			`{"gateway": "10.0.0.7", "destination": "fd00::/64"}`, `{"gateway": "10.0.0.7", "destination": null}`, `{"address_id": `, `{"address": "10.0.0.1\u0000/24"}`} {
			c.want("POST", path, body, 400, "*")
			c.want("DELETE", path, body, 400, "*")
		}
		c.want("POST", "/router/0000000000000005/4095", `{"address": "10.9.0.1/24"}`, 400, `{"result":"failure","details":"Invalid {vlan_id} value. Set [2-4094]"}`)
		refusal = api.Errorf(codes.Unavailable, "no router")
		c.want("GET", path, "", 404, "*")
		c.want("DELETE", path, `{"route_id": "all"}`, 404, "*")
	})
}
