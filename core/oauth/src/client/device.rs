//! The user's consent on another device (RFC 8628).

use std::time::Duration;

use serde::Deserialize;

use super::error::{LoginError, LoginStage, quoted};
use super::flow::Flow;
use super::grants::{Asked, DEVICE_CODE};
use super::guard::check_shown;
use super::steps::DeviceCode;
use crate::tokens::{TokenResponse, seconds};

const STAGE: LoginStage = LoginStage::Authorization;

/// How long a device code is waited for at most, in seconds.
const LONGEST_SECONDS: u64 = 1800;

/// How long to wait before asking again, where the server does not say.
const INTERVAL_SECONDS: u64 = 5;

/// The answer of a device authorization endpoint (RFC 8628, section 3.2).
#[derive(Deserialize)]
struct DeviceResponse {
    device_code: String,
    user_code: String,
    verification_uri: String,
    verification_uri_complete: Option<String>,
    #[serde(default, deserialize_with = "seconds")]
    expires_in: Option<u64>,
    #[serde(default, deserialize_with = "seconds")]
    interval: Option<u64>,
}

impl DeviceResponse {
    /// How long the code is waited for, in seconds.
    fn valid(&self) -> u64 {
        let valid = self.expires_in.unwrap_or(LONGEST_SECONDS);
        valid.min(LONGEST_SECONDS)
    }
}

impl Flow {
    /// Shows the user a code, and asks for the tokens until it is entered.
    pub(super) async fn by_device(&self, asked: &Asked<'_>) -> Result<TokenResponse, LoginError> {
        let device = self.device_code(asked).await?;
        self.mailbox
            .show(DeviceCode {
                user_code: quoted(&device.user_code),
                verification_uri: device.verification_uri.clone(),
                verification_uri_complete: device.verification_uri_complete.clone(),
                expires_in: Duration::from_secs(device.valid()),
            })
            .await?;
        self.entered(asked, &device).await
    }

    async fn device_code(&self, asked: &Asked<'_>) -> Result<DeviceResponse, LoginError> {
        let Some(url) = &asked.discovered.server.device_authorization_endpoint else {
            let why =
                "the authorization server has no login on another device; log in with a browser";
            return Err(LoginError::new(STAGE, why));
        };
        let scope = asked.scopes.text().unwrap_or_default();
        let mut form = vec![("resource", &*asked.origin.resource)];
        if !scope.is_empty() {
            form.push(("scope", &scope));
        }
        let endpoint = self.endpoint(asked.origin).await?;
        let response = endpoint.answer(STAGE, url, &form, None).await?;
        self.accepted().await?;
        let device: Result<DeviceResponse, _> = serde_json::from_slice(&response.body);
        let device = device.map_err(|_| {
            let why = "the answer is no device code; ask the operator of the authorization server, or log in with a browser";
            LoginError::new(STAGE, why)
        })?;
        let complete = device.verification_uri_complete.as_ref();
        for page in complete.into_iter().chain([&device.verification_uri]) {
            check_shown(page).map_err(|why| {
                let why = format!(
                    "the page for the code: {why}; ask the operator of the authorization server"
                );
                LoginError::new(STAGE, why)
            })?;
        }
        Ok(device)
    }

    /// Asks until the user has entered the code, or the server says that nothing will come of it (RFC 8628,
    /// section 3.5). While the server cannot be reached, each pause is twice the one before.
    async fn entered(
        &self,
        asked: &Asked<'_>,
        device: &DeviceResponse,
    ) -> Result<TokenResponse, LoginError> {
        let (begun, valid) = (self.mailbox.now(), device.valid());
        let mut interval = device
            .interval
            .unwrap_or(INTERVAL_SECONDS)
            .clamp(1, valid.max(1));
        let (mut pause, mut waited, mut outage) = (interval, 0, None);
        // Requests take time as well, and clocks are set back.
        let left =
            |now: u64, waited: u64| valid.saturating_sub(waited.max(now.saturating_sub(begun)));
        while left(self.mailbox.now(), waited) > 0 {
            self.mailbox.wait(Duration::from_secs(pause)).await?;
            waited += pause;
            let form = vec![
                ("grant_type", DEVICE_CODE),
                ("device_code", &*device.device_code),
            ];
            outage = match self.ask(asked, form).await {
                Err(error) if error.is("authorization_pending") => None,
                Err(error) if error.is("slow_down") => {
                    interval += 5;
                    None
                }
                Err(error) if error.is_away() => Some(error),
                outcome => return outcome,
            };
            pause = match outage {
                Some(_) => (2 * pause)
                    .min(left(self.mailbox.now(), waited))
                    .max(interval),
                None => interval,
            };
        }
        Err(match outage {
            Some(error) => error.and("the code has ended meanwhile: log in again"),
            None => LoginError::new(STAGE, "the code was not entered in time; log in again"),
        })
    }
}
