package api

// The calls of the balancer service.
var (
	SetVip          = Method[SetVipRequest, Vip]{"balancer.SetVip"}
	DeleteVip       = Method[DeleteVipRequest, DeleteVipResponse]{"balancer.DeleteVip"}
	ListVips        = Method[ListVipsRequest, ListVipsResponse]{"balancer.ListVips"}
	SetMember       = Method[SetMemberRequest, Vip]{"balancer.SetMember"}
	DeleteMember    = Method[DeleteMemberRequest, Vip]{"balancer.DeleteMember"}
	DrainMember     = Method[DrainMemberRequest, Vip]{"balancer.DrainMember"}
	ListConnections = Method[ListConnectionsRequest, ListConnectionsResponse]{"balancer.ListConnections"}
)
