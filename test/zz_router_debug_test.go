package test

import (
	"testing"
	"time"

	"weft/api"
)

func TestZZRouterDebug(t *testing.T) {
	c := start(t, options{})
	f := routedLab(t, c)
	f.documented()
	f.allRouted()
	time.Sleep(time.Second)
	for range 5 {
		f.reaches("h1", "192.168.30.10")
	}
	for _, fl := range call(c, api.ReadFlows, &api.ReadFlowsRequest{Dpid: dpid(t, f.Lab, "s1")}).Flows {
		if fl.Table >= 3 {
			_, e, _ := fl.Entry()
			t.Log(fl.Packets, e.String())
		}
	}
	t.Log(c.metric("weft_router_carried_total"))
}
