package engine

import (
	"context"
	"sync/atomic"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/rpc/encryption"
	"go.temporal.io/server/temporal"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	engineauth "pawl/internal/engine/auth"
)

// meant refuses calls that are for another engine. That engine had this address before, and its clients try again
// until they reach it. A call that names no engine (from the Temporal CLI or the UI) is for the engine that is here.
func meant(id *atomic.Pointer[string]) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		if wanted := metadata.ValueFromIncomingContext(ctx, engineauth.EngineHeader); len(wanted) > 0 && wanted[0] != "" && (id.Load() == nil || wanted[0] != *id.Load()) {
			return nil, serviceerror.NewUnavailable(engineauth.AnotherEngine)
		}
		return handle(ctx, req)
	}
}

// asking returns the options that make a server require a token. The frontend requires the pass's token or its
// certificate for every call. The other services trust their callers, so they require the certificate for every
// connection.
func asking(p *engineauth.Pass) []temporal.ServerOption {
	return []temporal.ServerOption{
		temporal.WithTLSConfigFactory(&encryption.FixedTLSConfigProvider{
			FrontendServerConfig: p.Server(), FrontendClientConfig: p.Insider(),
			InternodeServerConfig: p.Inner(), InternodeClientConfig: p.Insider(),
		}),
		temporal.WithAuthorizer(doorkeeper{p}),
		temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper { return doorkeeper{p} }),
	}
}

// doorkeeper allows everything to callers with the pass, and nothing to anybody else, not even a health check.
type doorkeeper struct{ pass *engineauth.Pass }

// GetClaims returns an administrator's claims for the pass's token, and for its certificate, which the connection has
// verified. The server does not call it for a request with neither token nor certificate.
func (d doorkeeper) GetClaims(info *authorization.AuthInfo) (*authorization.Claims, error) {
	if info.TLSSubject != nil || d.pass.Opens(info.AuthToken) {
		return &authorization.Claims{System: authorization.RoleAdmin}, nil
	}
	return nil, nil
}

// Authorize allows calls that have an administrator's claims.
func (d doorkeeper) Authorize(_ context.Context, claims *authorization.Claims, _ *authorization.CallTarget) (authorization.Result, error) {
	if claims != nil && claims.System == authorization.RoleAdmin {
		return authorization.Result{Decision: authorization.DecisionAllow}, nil
	}
	return authorization.Result{Decision: authorization.DecisionDeny, Reason: "this engine asks for pawl's token; `pawl up` says how the Temporal CLI brings it"}, nil
}
