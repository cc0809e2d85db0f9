//! Calls of the peer under way in JavaScript, and what they ask of it.

use mcpbolt::connection::{Call, CallKey, Handle, ReplyTo};
use mcpbolt::correlate::CancelToken;
use mcpbolt::mcp::Era;
use mcpbolt::message::Field;
use mcpbolt::server::{Context, Seal};

/// A call on its way to JavaScript.
#[derive(Debug)]
pub struct Arrived {
    pub call: Call,
    /// What it takes rounds by, where its client may be asked in that way.
    context: Option<Box<Context>>,
}

impl Arrived {
    /// A call as it came.
    ///
    /// # Errors
    /// As [`Context::new`].
    pub fn new(call: Call, handle: &Handle, seal: Option<&Seal>) -> Result<Self, Refused> {
        if !takes_rounds(&call) {
            return Ok(Self {
                call,
                context: None,
            });
        }
        match Context::new(handle.clone(), &call, seal) {
            Ok(context) => Ok(Self {
                call,
                context: Some(Box::new(context)),
            }),
            Err(why) => Err(Refused(call.reply, why)),
        }
    }
}

/// A call that is not carried out, and the sentence its client gets.
#[derive(Debug)]
pub struct Refused(pub ReplyTo, pub &'static str);

/// Whether the client may be asked by an answer: it repeats the call then.
fn takes_rounds(call: &Call) -> bool {
    let declared = |call: &Call| {
        let declared = call.message.as_ref().raw(Field::ClientCapabilities);
        declared.is_some_and(|declared| declared != "{}")
    };
    call.reply.revision().era() == Era::Stateless && declared(call)
}

/// What is needed to answer a call, and to ask on its behalf.
#[derive(Debug)]
pub struct Underway {
    pub reply: ReplyTo,
    cancel: CancelToken,
    context: Option<Box<Context>>,
}

impl From<Arrived> for Underway {
    fn from(Arrived { call, context }: Arrived) -> Self {
        Self {
            reply: call.reply,
            cancel: call.cancel,
            context,
        }
    }
}

impl Underway {
    pub fn is(&self, key: CallKey) -> bool {
        self.reply.key() == key
    }

    /// By which it asks; made when it asks first.
    pub fn context(&mut self, handle: &Handle) -> &Context {
        self.context.get_or_insert_with(|| {
            let (reply, cancel) = (self.reply.clone(), self.cancel.clone());
            Box::new(Context::without_rounds(handle.clone(), reply, cancel))
        })
    }
}
