package api

// The calls of the router service.
var (
	AddRouterAddress    = Method[AddRouterAddressRequest, AddRouterAddressResponse]{"router.AddRouterAddress"}
	DeleteRouterAddress = Method[DeleteRouterAddressRequest, DeleteRouterAddressResponse]{"router.DeleteRouterAddress"}
	AddRouterRoute      = Method[AddRouterRouteRequest, AddRouterRouteResponse]{"router.AddRouterRoute"}
	DeleteRouterRoute   = Method[DeleteRouterRouteRequest, DeleteRouterRouteResponse]{"router.DeleteRouterRoute"}
	ListRouters         = Method[ListRoutersRequest, ListRoutersResponse]{"router.ListRouters"}
)
