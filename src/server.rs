//! A running service: its sockets, its jobs, its end.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use actix_web::dev::ServerHandle;
use actix_web::{HttpServer, middleware, web};
use tokio::task::JoinHandle;

use crate::app::{self, App, StartError, gate};
use crate::clock::Clock;
use crate::config::{ConfigError, Settings};
use crate::http::{guard, routes};
use crate::jobs::{Jobs, Reload};

/// How long requests that are being answered may take when the service is told to stop, in seconds.
const SHUTDOWN: u64 = 30;

/// A client that has not said its request's head by then is cut off.
const HEAD_TIME: Duration = Duration::from_secs(10);

/// What has stopped may take so long to let go of the stores.
const CLOSE_TIME: Duration = Duration::from_secs(2);

/// An idle connection is kept for so long.
const KEEP_ALIVE: Duration = Duration::from_secs(75);

/// A client that takes nothing of what waits for it is cut off after so long, in milliseconds: without it, one that stops reading would
/// hold an open file for as long as it likes.
#[cfg(target_os = "linux")]
const SILENCE: u32 = 30_000;

/// So many connections may wait to be accepted; a system may let fewer.
const BACKLOG: i32 = 4_096;

/// A chunk of a blob is sent as soon as so much waits. It has to be small: a buffer that grows beyond 128 KiB, for a chunk of 96 KiB
/// behind what waits, is thrown away and made anew for the next.
const WRITE_BUFFER: usize = 16 * 1024;

/// A service that is running.
#[derive(Debug)]
pub struct Running {
    /// Where it listens.
    pub address: SocketAddr,
    /// Where its metrics are.
    pub admin_address: Option<SocketAddr>,
    /// Its parts.
    pub app: Arc<App>,
    handles: Vec<ServerHandle>,
    servers: Vec<JoinHandle<io::Result<()>>>,
    jobs: Jobs,
}

/// Binds the sockets, opens the stores, starts the jobs. `reload` brings settings that were changed meanwhile.
pub async fn start(settings: Settings, clock: Clock, reload: Option<Reload>) -> Result<Running, StartError> {
    app::callers(&settings)?;
    let listener = bind("server.listen", &settings.server.listen)?;
    let address = local_address(&listener)?;
    let admin = match settings.server.admin_listen.as_str() {
        "" => None,
        admin => Some(bind("server.admin_listen", admin)?),
    };
    let admin_address = admin.as_ref().map(local_address).transpose()?;
    let base_url = match settings.server.public_base_url.as_str() {
        "" => format!("http://{address}"),
        url => url.to_owned(),
    };
    app::first_ring(&settings).await?;
    let app = Arc::new(App::open(settings, clock, &base_url).await?);
    let mut running = Running {
        address,
        admin_address,
        jobs: Jobs::start(&app, reload),
        handles: Vec::new(),
        servers: Vec::new(),
        app,
    };
    let workers = std::thread::available_parallelism().map_or(2, usize::from);
    running.serve(listener, routes::public, workers)?;
    if let Some(admin) = admin {
        running.serve(admin, routes::admin, 1)?;
    }
    Ok(running)
}

impl Running {
    /// Stops: no new request, the running ones to their end, then the jobs. Nothing that was answered is lost.
    pub async fn stop(self) {
        for handle in &self.handles {
            handle.stop(true).await;
        }
        self.wind_up().await;
    }

    /// Waits until the servers have stopped by themselves or on a signal.
    pub async fn wait(mut self) -> io::Result<()> {
        let mut ended = Ok(());
        for server in std::mem::take(&mut self.servers) {
            let result = server.await.unwrap_or_else(|error| Err(io::Error::other(error.to_string())));
            for handle in &self.handles {
                handle.stop(true).await;
            }
            ended = ended.and(result);
        }
        self.wind_up().await;
        ended
    }

    async fn wind_up(self) {
        for server in self.servers {
            let _ = server.await;
        }
        self.jobs.stop().await;
        // A worker's thread lets go of the parts a moment after it has said that it stopped; only then are the stores closed.
        let closed = async {
            while Arc::strong_count(&self.app) > 1 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let _ = tokio::time::timeout(CLOSE_TIME, closed).await;
        self.app.close().await;
    }

    fn serve(
        &mut self,
        listener: TcpListener,
        routes: fn(&mut web::ServiceConfig),
        workers: usize,
    ) -> Result<(), StartError> {
        let parts = web::Data::from(self.app.clone());
        let server = HttpServer::new(move || {
            actix_web::App::new().app_data(parts.clone()).wrap(middleware::from_fn(guard::guard)).configure(routes)
        });
        let connections = gate::CONNECTIONS.min(open_files() / 2).max(workers);
        let server = server
            .workers(workers)
            .max_connections(connections.div_ceil(workers))
            .client_request_timeout(HEAD_TIME)
            .keep_alive(KEEP_ALIVE)
            .h1_write_buffer_size(WRITE_BUFFER)
            .shutdown_timeout(SHUTDOWN)
            .disable_signals()
            .listen(listener)
            .map_err(|error| ConfigError(format!("cannot listen: {error}")))?
            .run();
        self.handles.push(server.handle());
        self.servers.push(tokio::spawn(server));
        Ok(())
    }
}

/// How many files and connections this process may have open: as many as the system lets it, which many systems give only to who asks.
fn open_files() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    let open = if setrlimit(Resource::Nofile, raised).is_ok() { limit.maximum } else { limit.current };
    open.map_or(usize::MAX, |open| usize::try_from(open).unwrap_or(usize::MAX))
}

/// Connections that are accepted have the limit of their listener.
fn give_up_on_silence(listener: &TcpListener) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::net::sockopt::set_tcp_user_timeout(listener, SILENCE)?;
    Ok(())
}

fn bind(name: &str, address: &str) -> Result<TcpListener, ConfigError> {
    let listener = TcpListener::bind(address)
        .map_err(|error| ConfigError(format!("{name}: cannot listen on {address}: {error}")))?;
    give_up_on_silence(&listener).map_err(|error| ConfigError(format!("{name}: {error}")))?;
    // The standard library lets 128 wait, fewer than may come in a moment.
    rustix::net::listen(&listener, BACKLOG).map_err(|error| ConfigError(format!("{name}: {error}")))?;
    listener.set_nonblocking(true).map_err(|error| ConfigError(format!("{name}: {error}")))?;
    Ok(listener)
}

fn local_address(listener: &TcpListener) -> Result<SocketAddr, ConfigError> {
    listener.local_addr().map_err(|error| ConfigError(format!("server.listen: {error}")))
}
